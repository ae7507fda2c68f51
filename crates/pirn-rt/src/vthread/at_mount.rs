//! What the next mount of a thread has to do besides mounting it.
//!
//! Nearly always nothing, and a mount looks at this word in any case, because a new thread needs a
//! stack. So timing some threads ([`latency`](crate::sched::latency)) costs the others nothing, and
//! nor does holding a thread that is runnable, to read its stack.
//!
//! ```text
//!   31                              1   0
//!   +-------------------------------+---+
//!   | time at which it became       | 0 |   0 in all: NOTHING; 1: STACK, it needs one
//!   | runnable, in units of 128 ns  |   |   3: ASKED; 5: HELD
//!   +-------------------------------+---+   a time, and it has no stack: both
//! ```
//!
//! A runnable thread is in one of many queues, and may be mounted at any moment. A dump that wants
//! to read its stack holds it here, and not in its queue:
//!
//! ```text
//!   a dump                                          a carrier that mounts it
//!   L1  NOTHING or a time -> ASKED    ask           M1  phase = Running
//!   L2  a full barrier in each running thread           (the compiler keeps the order)
//!   L3  ASKED -> HELD                 hold          M2  is the word NOTHING?
//!   L4  phase = Runnable: reads the stack           M3    ASKED -> NOTHING, and goes on
//!   L5  HELD -> NOTHING               release             HELD: waits until that is over
//! ```
//!
//! Either M2 comes after L2's barrier in its thread: then it finds ASKED, and L3 fails, or HELD. Or
//! it comes before: then so does M1, and L4 finds that the thread runs, or has run and is off its
//! stack again. `sys::membarrier` is the barrier. The models do not know that one, and have fences
//! for L2 and between M1 and M2.

use crate::primitives::{
    AtomicU32,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const NOTHING: u32 = 0;
const STACK: u32 = 1;
const ASKED: u32 = 3;
const HELD: u32 = 5;

/// The binary logarithm of the unit of time, in nanoseconds.
const UNIT: u32 = 7;

/// See the module's documentation.
#[derive(Debug)]
pub struct AtMount(AtomicU32);

/// What a mount has to do besides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Duty(u32);

impl AtMount {
    /// Returns the word of a new thread, which needs a stack.
    #[inline]
    pub(crate) fn new() -> AtMount {
        AtMount(AtomicU32::new(STACK))
    }

    /// Returns whether there is nothing to do. Called by the carrier that mounts the thread, after
    /// it has said so.
    #[inline(always)]
    pub(crate) fn is_nothing(&self) -> bool {
        // Acquire: pairs with the Release in `release`: the stack has been read.
        self.0.load(Acquire) == NOTHING
    }

    /// Takes the duty. Waits while the thread is held. Called by the carrier that mounts it.
    pub(crate) fn take(&self, mut wait: impl FnMut(u32)) -> Duty {
        let mut round = 0;
        loop {
            let duty = self.0.load(Relaxed); // Relaxed: the exchange checks it.
            if duty == STACK {
                // Nobody asks for a thread without a stack, so no exchange is needed, for which
                // each spawn would pay. Release: as below.
                self.0.store(NOTHING, Release);
                return Duty(duty);
            }
            // Acquire: as in `is_nothing`. Release: pairs with the Acquire in `hold`, for our
            // phase. Relaxed: looked at again.
            let taken = duty != HELD
                && self
                    .0
                    .compare_exchange(duty, NOTHING, AcqRel, Relaxed)
                    .is_ok();
            if taken {
                return Duty(if duty == ASKED { NOTHING } else { duty });
            }
            wait(round);
            round += 1;
        }
    }

    /// Has the next mount find out for how long the thread was runnable, if it became so at the
    /// time `now`. Called by the thread that makes it runnable.
    pub(crate) fn time(&self, now: u64) {
        let time = match ((now >> UNIT) as u32) << 1 {
            0 => u32::MAX - 1, // a unit earlier: 0 has a meaning of its own
            time => time,
        };
        let before = self.0.load(Relaxed); // Relaxed: the exchange checks it.
        if matches!(before, NOTHING | STACK) {
            // Relaxed: complete in itself. Lost if another asks for the thread just now.
            let _ = self.0.compare_exchange(before, time, Relaxed, Relaxed);
        }
    }

    /// `NOTHING → ASKED`. A barrier in every thread must follow. Returns `false` if another has
    /// asked, or the thread has no stack.
    #[must_use = "`true` is the duty to hold or to withdraw"]
    #[allow(dead_code)] // For dumps.
    #[inline]
    pub fn ask(&self) -> bool {
        let before = self.0.load(Relaxed); // Relaxed: the exchange checks it.
        // Relaxed: the barrier follows.
        before & 1 == 0
            && self
                .0
                .compare_exchange(before, ASKED, Relaxed, Relaxed)
                .is_ok()
    }

    /// `ASKED → HELD`. Nobody mounts the thread from now on. Whether somebody has done so before is
    /// to be seen by its phase. Returns `false` if it is being mounted.
    #[must_use = "`true` is the duty to release"]
    #[allow(dead_code)] // For dumps.
    #[inline]
    pub fn hold(&self) -> bool {
        // Acquire: pairs with the Release in `take`, if this is another's ASKED: our own has been
        // taken, after our barrier. Relaxed: nothing is concluded.
        self.0
            .compare_exchange(ASKED, HELD, Acquire, Relaxed)
            .is_ok()
    }

    /// `HELD → NOTHING`.
    #[allow(dead_code)] // For dumps.
    #[inline]
    pub fn release(&self) {
        self.0.store(NOTHING, Release); // Release: pairs with the Acquire of a mount.
    }

    /// `ASKED → NOTHING`, if that is still so.
    #[allow(dead_code)] // For dumps.
    #[inline]
    pub fn withdraw(&self) {
        // Relaxed: nothing has been read.
        let _ = self.0.compare_exchange(ASKED, NOTHING, Relaxed, Relaxed);
    }
}

impl Duty {
    /// Returns for how many nanoseconds the thread has been runnable at the time `now()`, if that
    /// is to be found out: 0 if that is before it became so, by another processor's clock, or more
    /// than two minutes after.
    #[inline]
    pub(crate) fn runnable_for(self, now: impl FnOnce() -> u64) -> Option<u64> {
        (self.0 > STACK).then(|| {
            let since = (((now() >> UNIT) as u32) << 1).wrapping_sub(self.0);
            u64::try_from(since as i32 >> 1).unwrap_or(0) << UNIT
        })
    }
}
