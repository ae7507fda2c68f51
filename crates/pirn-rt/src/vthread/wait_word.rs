//! How one episode of waiting is decided, and how an interruption takes part in that.
//!
//! ```text
//!   bits    9 8           7          6 5              4             3 .. 0
//!         +-------------+----------+----------------+-------------+---------------------------------+
//!         | DELIVERS TO | LISTENED | UNDELIVERED TO | INTERRUPTED | PENDING | ASLEEP | an outcome   |
//!         | sleep futex |          | sleep futex    |             |                                 |
//!         +-------------+----------+----------------+-------------+---------------------------------+
//!   above that: SAFE_POINT, the thread has something to run first; UNINTERRUPTIBLE, no interrupt
//!   ends the wait; EXPIRED, a deadline of the thread has passed; LEFT, a part of what was requested
//!   can only be run in the thread's own code
//!
//!   the wait          to          by           which means
//!   an outcome        PENDING     begin        the thread will wait; DELIVERS says in what way
//!   PENDING           ASLEEP      fall_asleep  a platform thread waits in the kernel
//!   PENDING, ASLEEP   an outcome  decide       the caller has to wake the thread
//!   PENDING, ASLEEP   an outcome  interrupt    the same, and INTERRUPTED is set
//!
//!   the flags    to                        by             which means
//!   any          INTERRUPTED, UNDELIVERED  interrupt      no wait to end: the next does not begin
//!   any          INTERRUPTED, a part of    interrupt      it ended a wait, and is delivered to
//!                UNDELIVERED                              waits of that kind
//!   any          EXPIRED                   expire         the same as by an interrupt
//!   UNDELIVERED  not                       begin          a wait does not begin for it
//!   any          none                      take           the thread has read and cleared the flag
//!   EXPIRED      not                       forget_expiry  the call with the deadline has returned
//!   any          SAFE_POINT                request_safe_point  a wait is ended; none begins
//!   SAFE_POINT   not                       take_request   the thread is about to run it
//!   any          LEFT                      leave_request  waits go on; the monitor interrupts it
//! ```
//!
//! Exactly one read-modify-write decides a wait, and its thread must perform the wake: the
//! `Handshake` relies on this guarantee. The flag and the wait share a word, which makes
//! interruption free of races: an interrupt finds the wait, or the wait finds the flag.
//!
//! The flag is two bits. A deadline for a call (`crates/pirn/src/scope/deadline.rs`) interrupts the
//! thread by EXPIRED, another thread by INTERRUPTED. When the call has returned, only EXPIRED is
//! cleared, so an interrupt by another thread is not lost.
//!
//! A wait that can return an error ([`Interruptible::Always`]: input and output) does so for as
//! long as the flag is set. A wait that cannot return one ends early instead, once per interrupt,
//! so that a sleep in a loop does not spin when the loop does not check the flag. There are two
//! kinds of such waits, each with its own UNDELIVERED bit: a futex may belong to a lock, which
//! waits again as if nothing had happened, and the interrupt must still end a sleep that follows.
//! Waits that no interrupt ends (`pthread` locks) are UNINTERRUPTIBLE, or have a word of their own,
//! which nothing reaches.
//!
//! A safe point request (`sched/safepoint.rs`) asks a thread to run something, such as a signal's
//! handler, on its own stack. The request ends every wait except one with a word of its own. It
//! does not count as an interrupt: afterwards the wait begins again, or fails as the system call
//! would have failed after a handler.

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
/// The interrupt has ended no futex wait, or no sleep, yet.
const UNDELIVERED_TO_FUTEX: u32 = 1 << 5;
const UNDELIVERED_TO_SLEEP: u32 = 1 << 6;
const UNDELIVERED: u32 = UNDELIVERED_TO_FUTEX | UNDELIVERED_TO_SLEEP;
/// A listener is called for interrupts.
const LISTENED: u32 = 1 << 7;
/// The distance from the bits of UNDELIVERED up to the bits of DELIVERS, which say to which kind
/// of waits the last one begun belongs.
const DELIVERS_SHIFT: u32 = 3;
const DELIVERS: u32 = UNDELIVERED << DELIVERS_SHIFT;
/// A safe point has been requested.
const SAFE_POINT: u32 = 1 << 10;
/// No interrupt ends the last wait begun.
const UNINTERRUPTIBLE: u32 = 1 << 11;
/// A deadline for a call that the thread is in has passed.
const EXPIRED: u32 = 1 << 12;
/// A part of what was requested is left, until the thread is interrupted in its own code.
const LEFT: u32 = 1 << 13;
/// Either of these: the thread is interrupted.
const FLAG: u32 = INTERRUPTED | EXPIRED;

/// How an interrupt ends a wait.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Interruptible {
    /// A futex: it ends early, or does not begin, once per interrupt.
    OnceInFutex,
    /// A sleep, or an event loop's wait: it ends early, or does not begin, once per interrupt.
    OnceInSleep,
    /// A wait that ends early, and does not begin as long as the thread is interrupted.
    Always,
    /// No interrupt ends the wait. A safe point request does: it ends every wait in this word.
    Never,
}

/// Why a wait has not begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Refused {
    /// The thread has been interrupted.
    Interrupted,
    /// A safe point has been requested.
    SafePoint,
}

impl Interruptible {
    /// Returns the bits of UNDELIVERED that an interrupt of such a wait clears.
    #[inline]
    fn delivered(self) -> u32 {
        match self {
            Interruptible::OnceInFutex => UNDELIVERED_TO_FUTEX,
            Interruptible::OnceInSleep => UNDELIVERED_TO_SLEEP,
            Interruptible::Always => UNDELIVERED,
            Interruptible::Never => 0,
        }
    }
}

/// A decided wait, as its decider saw it. Only the winner of the wait has it, once.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "the waiter has to be woken"]
pub struct Decided {
    /// Whether the thread is a platform thread that sleeps in the kernel, or is about to sleep.
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

/// The effect of a request, on which the caller must act.
#[derive(PartialEq, Eq, Debug)]
#[must_use = "a wait may have been ended"]
pub(crate) struct RequestEffect {
    /// The wait that it has ended.
    pub(crate) ended: Option<Decided>,
    /// Whether there was no request before.
    pub(crate) first: bool,
}

/// The word of a thread's interruptible waits, or of a single wait that no interrupt ends.
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

    /// `outcome → PENDING`, unless an interrupt must end the wait first. For the thread itself.
    ///
    /// # Errors
    /// Why the thread must not wait.
    #[inline]
    pub(crate) fn begin(&self, interruptible: Interruptible) -> Result<(), Refused> {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        loop {
            let asked = match interruptible {
                Interruptible::Always => FLAG,
                _ => interruptible.delivered(),
            };
            // One test for both in the usual case.
            let refused = seen & (asked | SAFE_POINT) != 0;
            debug_assert!(seen & WAIT >= DECIDED, "a thread waits twice");
            let next = if refused {
                if seen & SAFE_POINT != 0 {
                    // The caller reads the request by `take_request`.
                    return Err(Refused::SafePoint);
                }
                seen & !interruptible.delivered()
            } else {
                let uninterruptible = match interruptible {
                    Interruptible::Never => UNINTERRUPTIBLE,
                    _ => 0,
                };
                seen & !(WAIT | DELIVERS | UNINTERRUPTIBLE)
                    | interruptible.delivered() << DELIVERS_SHIFT
                    | uninterruptible
                    | PENDING
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
        // Relaxed: confirmed by the exchange; or a decision, and not an earlier wait's,
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

    /// Does what [`interrupt`](Self::interrupt) does, because a deadline has passed.
    #[inline]
    pub fn expire(&self, outcome: u32) -> InterruptEffect {
        self.raise(EXPIRED, outcome)
    }

    fn raise(&self, flag: u32, outcome: u32) -> InterruptEffect {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        loop {
            let waits = seen & WAIT < DECIDED && seen & UNINTERRUPTIBLE == 0;
            let next = if waits {
                let delivered = (seen & DELIVERS) >> DELIVERS_SHIFT;
                (seen | flag | UNDELIVERED) & !(WAIT | delivered) | outcome
            } else {
                seen | flag | UNDELIVERED
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

    /// Requests a safe point, and decides a wait that is under way, which ends with `outcome`.
    pub(crate) fn request_safe_point(&self, outcome: u32) -> RequestEffect {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        loop {
            let waits = seen & WAIT < DECIDED;
            let next = match waits {
                true => seen & !WAIT | SAFE_POINT | outcome,
                false => seen | SAFE_POINT,
            };
            // Release: pairs with the Acquire in `outcome` and `take_request`, for what the thread
            // is to run. Acquire: pairs with the Release in `begin`, for what the thread prepared.
            match self.0.compare_exchange(seen, next, AcqRel, Relaxed) {
                Ok(_) => {
                    let asleep = seen & WAIT == ASLEEP;
                    return RequestEffect {
                        ended: waits.then_some(Decided { asleep }),
                        first: seen & SAFE_POINT == 0,
                    };
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Returns whether a safe point has been requested and the thread has not taken the request.
    #[inline]
    pub(crate) fn safe_point_requested(&self) -> bool {
        self.0.load(Relaxed) & SAFE_POINT != 0 // Relaxed: `take_request` acquires.
    }

    /// Takes the safe point request: the caller, which is the thread itself, is about to run what
    /// is pending. Returns whether there was a request.
    #[inline]
    pub(crate) fn take_request(&self) -> bool {
        // Acquire: pairs with the Release in `request_safe_point`. Release: what is done before is
        // not done after a later request.
        self.0.fetch_and(!SAFE_POINT, AcqRel) & SAFE_POINT != 0
    }

    /// Notes that a part of what was requested is left, for a place where the thread can be
    /// interrupted. For the thread itself.
    pub(crate) fn leave_request(&self) {
        self.0.fetch_or(LEFT, Relaxed); // Relaxed: for this thread, and the carrier that mounts it.
    }

    /// Returns whether the thread, interrupted in its own code, has something to run.
    #[inline]
    pub(crate) fn has_request_in_own_code(&self) -> bool {
        self.0.load(Relaxed) & (SAFE_POINT | LEFT) != 0 // Relaxed: as in `safe_point_requested`.
    }

    /// Does what [`take_request`](Self::take_request) does, and takes what was left, for a thread
    /// that was interrupted in its own code.
    pub(crate) fn take_request_in_own_code(&self) -> bool {
        // As in `take_request`.
        self.0.fetch_and(!(SAFE_POINT | LEFT), AcqRel) & (SAFE_POINT | LEFT) != 0
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
        self.is_interrupted() && self.0.fetch_and(!(FLAG | UNDELIVERED), Acquire) & FLAG != 0
    }

    /// Clears what [`expire`](Self::expire) has set; an interrupt stays. For the thread itself.
    pub fn forget_expiry(&self) {
        let mut seen = self.0.load(Relaxed); // Relaxed: confirmed by the exchange.
        while seen & EXPIRED != 0 {
            let delivered = if seen & INTERRUPTED == 0 {
                UNDELIVERED
            } else {
                0
            };
            let next = seen & !(EXPIRED | delivered);
            // Relaxed: the caller of `expire` publishes nothing here. What an interrupter has
            // published stays for a later Acquire, which reads from this exchange or from a later
            // one (a release sequence).
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
