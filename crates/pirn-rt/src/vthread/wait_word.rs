//! How one episode of waiting is decided, and how an interruption takes part in that.
//!
//! ```text
//!   bits    9 8          7         6 5                 4             3 .. 0
//!         +------------+---------+-------------------+-------------+---------------------------------+
//!         | HEARS      | LISTENED| UNHEARD           | INTERRUPTED | PENDING | ASLEEP | an outcome   |
//!         | sleep futex|         | by sleep, by futex|             |                                 |
//!         +------------+---------+-------------------+-------------+---------------------------------+
//!   above that: SUMMONED, the thread has something to run first; DEAF, the wait hears no interrupt;
//!   EXPIRED, a deadline of the thread has passed
//!
//!   the wait          to          by           which means
//!   an outcome        PENDING     begin        the thread will wait; HEARS says what kind of wait it is
//!   PENDING           ASLEEP      fall_asleep  a platform thread waits in the kernel
//!   PENDING, ASLEEP   an outcome  decide       the caller has to wake the thread
//!   PENDING, ASLEEP   an outcome  interrupt    the same, and INTERRUPTED is set
//!
//!   the flags         to          by           which means
//!   any               INTERRUPTED and all UNHEARD      interrupt, no wait to end: the next one is not begun
//!   any               INTERRUPTED and other UNHEARD    interrupt that ended a wait, which has heard it
//!   any               EXPIRED     expire       the same as by an interrupt, and for waits the same
//!   UNHEARD           not         begin        a wait not begun has heard it
//!   any               none        take         the thread has read the flag, and cleared it
//!   EXPIRED           not         forget_expiry      the deadline was for a call, which has returned
//!   any               SUMMONED    summon       a wait under way is ended; none begins
//!   SUMMONED          not         answer       the thread is about to run what it was summoned for
//! ```
//!
//! Exactly one read-modify-write decides a wait, and its thread must perform the wake: the
//! `Handshake` relies on this guarantee. The flag and the wait share a word, which makes
//! interruption free of races: an interrupt finds the wait, or the wait finds the flag.
//!
//! The flag is two bits. A deadline for a call (`scope/extent.rs`) interrupts the thread as another
//! thread does, but when the call has returned only that is taken back: an interrupt by another
//! thread is not lost.
//!
//! A wait that can return an error ([`Hearing::Always`]: input and output) does so for as long as
//! the flag is set. A wait that cannot return one ends early instead, once per interrupt, so that a
//! sleep in a loop does not spin when the loop does not check the flag. There are two kinds of such
//! waits, each with its own UNHEARD bit: a futex may belong to a lock, which waits again as if
//! nothing had happened, and a sleep that follows must still hear of the interrupt. Waits that hear
//! no interrupt (`pthread` locks) are DEAF, or have a word of their own, which nothing reaches.
//!
//! A thread is summoned (`summons.rs`) to run something, such as a signal's handler, on its own
//! stack. That ends each wait but those with a word of their own, and interrupts nothing: the wait
//! begins again afterwards, or fails as the system call would have after a handler.

use crate::primitives::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed},
};

const PENDING: u32 = 0;
const ASLEEP: u32 = 1;
const DECIDED: u32 = 2;
/// The bits of the wait.
const WAIT: u32 = 0xf;
const INTERRUPTED: u32 = 1 << 4;
/// No futex, or no sleep, has heard of the interrupt yet.
const UNHEARD_BY_FUTEX: u32 = 1 << 5;
const UNHEARD_BY_SLEEP: u32 = 1 << 6;
const UNHEARD: u32 = UNHEARD_BY_FUTEX | UNHEARD_BY_SLEEP;
/// A listener wants to hear of interrupts.
const LISTENED: u32 = 1 << 7;
/// The distance from the bits of UNHEARD up to the bits of HEARS, which say what the last wait
/// begun hears.
const HEARS_SHIFT: u32 = 3;
const HEARS: u32 = UNHEARD << HEARS_SHIFT;
/// The thread has been summoned.
const SUMMONED: u32 = 1 << 10;
/// The last wait begun hears no interrupt.
const DEAF: u32 = 1 << 11;
/// A deadline for a call that the thread is in has passed.
const EXPIRED: u32 = 1 << 12;
/// Either of these: the thread is interrupted.
const FLAG: u32 = INTERRUPTED | EXPIRED;

/// How a wait hears an interruption.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Hearing {
    /// A futex: it ends early, or does not begin, once per interrupt.
    Futex,
    /// A sleep, or an event loop's wait: it behaves in the same way.
    Sleep,
    /// It does not begin as long as the thread is interrupted.
    Always,
    /// It hears none, only a summons, as every wait does in this word.
    Summons,
}

/// Why a wait has not begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The thread has been interrupted.
    Interrupted,
    /// The thread has been summoned.
    Summoned,
}

impl Hearing {
    /// Returns the UNHEARD bits that are cleared once a wait of this kind has heard the interrupt.
    #[inline]
    fn heard(self) -> u32 {
        match self {
            Hearing::Futex => UNHEARD_BY_FUTEX,
            Hearing::Sleep => UNHEARD_BY_SLEEP,
            Hearing::Always => UNHEARD,
            Hearing::Summons => 0,
        }
    }
}

/// A decided wait, as its decider saw it. Only the winner of the wait has it, once.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "the waiter has to be woken"]
pub struct Decided {
    /// Whether the thread is a platform thread that sleeps in the kernel, or is about to.
    pub(crate) asleep: bool,
}

/// The effect of an interrupt, on which the caller must act.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a wait may have been ended"]
pub struct InterruptEffect {
    /// The wait that it has ended.
    pub ended: Option<Decided>,
    /// Whether a listener must be told.
    pub listened: bool,
}

/// The effect of a summons, on which the caller must act.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a wait may have been ended"]
pub(crate) struct SummonEffect {
    /// The wait that it has ended.
    pub(crate) ended: Option<Decided>,
    /// Whether the thread had not been summoned before.
    pub(crate) first: bool,
}

/// The word of a thread's interruptible waits, or of a single wait that hears no interruption.
#[derive(Debug)]
pub struct WaitWord(AtomicU32);

impl WaitWord {
    /// Returns the word of a thread that does not wait and is not interrupted.
    #[inline]
    pub(crate) fn idle() -> WaitWord {
        WaitWord(AtomicU32::new(DECIDED))
    }

    /// Returns the word of a wait that has begun.
    #[inline]
    pub(crate) fn pending() -> WaitWord {
        WaitWord(AtomicU32::new(PENDING))
    }

    /// `outcome → PENDING`, unless the wait must hear an interruption. For the thread itself.
    ///
    /// # Errors
    /// Why the thread must not wait.
    #[inline]
    pub(crate) fn begin(&self, hearing: Hearing) -> Result<(), Refused> {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        loop {
            let asked = match hearing {
                Hearing::Always => FLAG,
                _ => hearing.heard(),
            };
            // One test for both in the usual case.
            let refused = seen & (asked | SUMMONED) != 0;
            debug_assert!(seen & WAIT >= DECIDED, "a thread waits twice");
            let next = if refused {
                if seen & SUMMONED != 0 {
                    // What it was summoned for is read after `answer`.
                    return Err(Refused::Summoned);
                }
                seen & !hearing.heard()
            } else {
                let deaf = match hearing {
                    Hearing::Summons => DEAF,
                    _ => 0,
                };
                seen & !(WAIT | HEARS | DEAF) | hearing.heard() << HEARS_SHIFT | deaf | PENDING
            };
            // Release: pairs with the Acquire in `decide` and `interrupt`, for what the thread
            // prepared. Acquire: pairs with the Release in `interrupt`, for what the interrupter
            // did before.
            match self.0.compare_exchange(seen, next, AcqRel, Relaxed) {
                Ok(_) if refused => return Err(Refused::Interrupted),
                Ok(_) => return Ok(()),
                Err(now) => seen = now,
            }
        }
    }

    /// `PENDING, ASLEEP → outcome`. Returns `None` if the wait has been decided already. `outcome`
    /// is between 2 and 15.
    ///
    /// The word may be gone when this returns.
    #[inline]
    pub(crate) fn decide(&self, outcome: u32) -> Option<Decided> {
        // Relaxed: confirmed by the exchange; or a decision, which is not that of an earlier wait,
        // because the caller found the wait under a lock, after `begin`.
        let mut seen = self.0.load(Relaxed);
        while seen & WAIT < DECIDED {
            let next = seen & !WAIT | outcome;
            // Release: pairs with the Acquire in `outcome`, for what the caller did before.
            // Acquire: pairs with the Release in `begin`, for what the thread prepared. Relaxed on
            // failure: nothing is concluded.
            match self.0.compare_exchange(seen, next, AcqRel, Relaxed) {
                Ok(_) => {
                    let asleep = seen & WAIT == ASLEEP;
                    return Some(Decided { asleep });
                }
                Err(now) => seen = now,
            }
        }
        None
    }

    /// `PENDING → ASLEEP`, for a platform thread. Returns the value with which the kernel must
    /// compare the word, or `None` if the wait has been decided.
    pub(crate) fn fall_asleep(&self) -> Option<u32> {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange, or by the kernel.
        loop {
            match seen & WAIT {
                PENDING => {
                    let next = seen | ASLEEP;
                    // Relaxed: the kernel compares again.
                    match self.0.compare_exchange(seen, next, Relaxed, Relaxed) {
                        Ok(_) => return Some(next),
                        Err(now) => seen = now,
                    }
                }
                ASLEEP => return Some(seen),
                _ => return None,
            }
        }
    }

    /// Returns the outcome of a wait that has been decided.
    #[inline]
    pub(crate) fn outcome(&self) -> Option<u32> {
        // Acquire: pairs with the Release in `decide` and `interrupt`, for what the decider did
        // before.
        let wait = self.0.load(Acquire) & WAIT;
        (wait >= DECIDED).then_some(wait)
    }

    /// Sets the flag, and decides a wait that is under way, which ends with `outcome`.
    #[inline]
    pub fn interrupt(&self, outcome: u32) -> InterruptEffect {
        self.raise(INTERRUPTED, outcome)
    }

    /// Does the same because a deadline has passed.
    #[inline]
    pub fn expire(&self, outcome: u32) -> InterruptEffect {
        self.raise(EXPIRED, outcome)
    }

    fn raise(&self, flag: u32, outcome: u32) -> InterruptEffect {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        loop {
            let waits = seen & WAIT < DECIDED && seen & DEAF == 0;
            let next = if waits {
                let heard = (seen & HEARS) >> HEARS_SHIFT;
                (seen | flag | UNHEARD) & !(WAIT | heard) | outcome
            } else {
                seen | flag | UNHEARD
            };
            // Release: pairs with the Acquire in `outcome`, `begin`, `is_interrupted` and `take`,
            // for what the caller did before. Acquire: pairs with the Release in `begin` and
            // `listen`, for what was prepared.
            match self.0.compare_exchange(seen, next, AcqRel, Relaxed) {
                Ok(_) => {
                    let asleep = seen & WAIT == ASLEEP;
                    return InterruptEffect {
                        ended: waits.then_some(Decided { asleep }),
                        listened: seen & LISTENED != 0,
                    };
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Summons the thread, and decides a wait that is under way, which ends with `outcome`.
    pub(crate) fn summon(&self, outcome: u32) -> SummonEffect {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        loop {
            let waits = seen & WAIT < DECIDED;
            let next = match waits {
                true => seen & !WAIT | SUMMONED | outcome,
                false => seen | SUMMONED,
            };
            // Release: pairs with the Acquire in `outcome` and `answer`, for what the thread is to
            // run. Acquire: pairs with the Release in `begin`, for what the thread prepared.
            match self.0.compare_exchange(seen, next, AcqRel, Relaxed) {
                Ok(_) => {
                    let asleep = seen & WAIT == ASLEEP;
                    return SummonEffect {
                        ended: waits.then_some(Decided { asleep }),
                        first: seen & SUMMONED == 0,
                    };
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Returns whether the thread has been summoned, and has not answered.
    #[inline]
    pub(crate) fn is_summoned(&self) -> bool {
        self.0.load(Relaxed) & SUMMONED != 0 // Relaxed: `answer` acquires.
    }

    /// Notes that the thread, which calls this, is about to run what it was summoned for. Returns
    /// whether it was.
    #[inline]
    pub(crate) fn answer(&self) -> bool {
        // Acquire: pairs with the Release in `summon`. Release: what is done before is not done
        // after a later summons.
        self.0.fetch_and(!SUMMONED, AcqRel) & SUMMONED != 0
    }

    /// Returns whether the thread has been interrupted.
    #[inline]
    pub fn is_interrupted(&self) -> bool {
        // Acquire: pairs with the Release in `interrupt`, for what the interrupter did before.
        self.0.load(Acquire) & FLAG != 0
    }

    /// Clears the flag. Returns whether it was set. For the thread itself.
    #[inline]
    pub fn take(&self) -> bool {
        // Acquire: as in `is_interrupted`; without the load, each call would pay for a write.
        self.is_interrupted() && self.0.fetch_and(!(FLAG | UNHEARD), Acquire) & FLAG != 0
    }

    /// Clears what [`expire`](Self::expire) has set; an interrupt stays. For the thread itself.
    pub fn forget_expiry(&self) {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        while seen & EXPIRED != 0 {
            let heard = if seen & INTERRUPTED == 0 { UNHEARD } else { 0 };
            let next = seen & !(EXPIRED | heard);
            // Relaxed: who expired it has no news; an interrupt's stay for a later Acquire, which
            // reads from this exchange or from one behind it (a release sequence).
            match self.0.compare_exchange(seen, next, Relaxed, Relaxed) {
                Ok(_) => return,
                Err(now) => seen = now,
            }
        }
    }

    /// Makes later interrupts report that there is a listener. Returns whether there has been an
    /// interrupt already.
    #[inline]
    pub fn listen(&self) -> bool {
        // Release: pairs with the Acquire in `interrupt`, for the listener. Acquire: pairs with the
        // Release there, for what the interrupter did before.
        self.0.fetch_or(LISTENED, AcqRel) & FLAG != 0
    }

    /// Returns the word, for the kernel to wait on.
    #[inline]
    pub fn atomic(&self) -> &AtomicU32 {
        &self.0
    }
}
