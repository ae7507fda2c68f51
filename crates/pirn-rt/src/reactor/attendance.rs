//! Which idle carrier wakes for timers.
//!
//! Of all sleeping carriers, at most one has a timeout, the deadline of the first timer; it
//! *attends*. The others sleep until they are kicked. So a timer that comes due costs one wake-up.
//!
//! ```text
//!   thread that arms a timer           carrier that goes to sleep
//!   1. publish the first deadline      a. until = the first deadline (or leave it: a carrier attends)
//!   2. fence                           b. when it wakes: until = never, fence
//!   3. read `until`: is it later?      c. back to a: read the first deadlines
//!      then kick a sleeper
//! ```
//!
//! A thread that arms with a deadline before `until` kicks. The kicked carrier, or the one that
//! passes the kick on, comes to a and sees the new deadline. A thread that arms with a later
//! deadline relies on the carrier that attends. That carrier has not reached b yet: fences have one
//! order, so if 2 came after b, 3 would have seen that no carrier attends. So it will reach b, and
//! see the deadline at c.
//!
//! A thread that arms on its carrier's behalf omits 2 and 3: before the carrier sleeps it comes to
//! a, which begins with a fence.
//!
//! `crates/pirn-model` checks this file: `attendance_model.rs`. Each of the two fences, removed or
//! weakened to AcqRel, is found by one of its models. A look at the first deadline before the fence
//! of step 2 is found by the tests of `review_model.rs`. All else is Relaxed.

use crate::arch;
use crate::primitives::{AtomicU64, Ordering::Relaxed};
use crate::time::Deadline;

const NEVER: u64 = Deadline::NEVER.nanos();

/// The deadline of the first timer of a heap, readable without the heap's lock.
pub(crate) struct First(AtomicU64);

impl First {
    /// Returns the state without timers.
    pub(crate) fn new() -> First {
        First(AtomicU64::new(NEVER))
    }

    /// Updates it. Under the heap's lock.
    #[inline]
    pub(crate) fn publish(&self, deadline: Deadline) {
        let deadline = deadline.nanos();
        // Relaxed: changed under the lock only. Read first, because all carriers read it.
        if self.0.load(Relaxed) != deadline {
            self.0.store(deadline, Relaxed); // Relaxed: ordered by the fences.
        }
    }

    /// Returns the deadline.
    #[inline]
    pub(crate) fn get(&self) -> Deadline {
        // Relaxed: ordered by the fences. The timer itself is read under the heap's lock.
        Deadline::from_nanos(self.0.load(Relaxed))
    }
}

/// See the module's documentation.
pub(crate) struct Attendance {
    /// The time until which the attending carrier sleeps.
    until: AtomicU64,
}

impl Attendance {
    /// Returns the state in which no carrier attends.
    pub(crate) fn new() -> Attendance {
        Attendance {
            until: AtomicU64::new(NEVER),
        }
    }

    /// Makes the calling carrier, which is about to sleep, attend, unless another one does. Returns
    /// when it should wake by itself, if ever.
    pub(crate) fn begin(&self, first: impl Fn() -> Deadline) -> Deadline {
        arch::full_fence(); // Between what this carrier has armed, or step b, and the reads.
        loop {
            let deadline = first();
            let until = self.until.load(Relaxed); // Relaxed: ordered by the fence.
            if until <= deadline.nanos() {
                return Deadline::NEVER;
            }
            // Relaxed: a thread that arms relies on step b, after the sleep.
            if self
                .until
                .compare_exchange(until, deadline.nanos(), Relaxed, Relaxed)
                .is_ok()
            {
                return deadline;
            }
        }
    }

    /// Notes that the carrier that was to sleep until `deadline` is awake: step b.
    pub(crate) fn end(&self, deadline: Deadline) {
        // Relaxed: ordered by the fence of the next `begin`. Failure: another one attends, and
        // earlier.
        let _ = self
            .until
            .compare_exchange(deadline.nanos(), NEVER, Relaxed, Relaxed);
    }

    /// Returns whether no sleeping carrier will wake by the `first` deadline, for a thread that has
    /// published one. `first` is called behind the fence: if it does not see what another carrier
    /// has published, or takes back, that carrier will see what this thread has.
    pub(crate) fn misses(&self, first: impl FnOnce() -> Deadline) -> bool {
        arch::full_fence(); // Step 2.
        // Relaxed: ordered by the fence.
        first().nanos() < self.until.load(Relaxed)
    }
}
