//! The monitor's doze: it sleeps while nobody holds a processor.
//!
//! ```text
//!   monitor                            carrier that takes a processor
//!   1. state = ASLEEP                  a. the processor leaves the idle list
//!   2. fence                           b. fence
//!   3. look: are all idle?             c. read the state: ASLEEP? then wake the monitor
//!   4. sleep while state is ASLEEP
//! ```
//!
//! Fences have one order: if 2 comes before b, the carrier sees ASLEEP at c; otherwise the monitor
//! sees at 3 that not all are idle.
//!
//! `crates/pirn-model` checks this file: `doze_model.rs`. Each of the two fences, removed or
//! weakened to AcqRel, is found by one of its models. The rest is Relaxed.

use crate::arch;
use crate::primitives::{AtomicU32, Ordering::Relaxed};
use crate::sys;
use crate::time::Deadline;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Whether the monitor sleeps.
pub(crate) struct Doze(AtomicU32);

impl Doze {
    /// Returns a monitor that is awake.
    pub(crate) fn new() -> Doze {
        Doze(AtomicU32::new(AWAKE))
    }

    /// Wakes the monitor if it sleeps: the caller has just taken a processor off the idle list, by
    /// a read-modify-write.
    #[inline]
    pub(crate) fn stir(&self) {
        arch::fence_after_atomic(); // Step b.
        // Relaxed: ordered by the fence; nothing is passed on.
        if self.0.load(Relaxed) == ASLEEP && self.0.swap(AWAKE, Relaxed) == ASLEEP {
            sys::futex_wake(&self.0, 1);
        }
    }

    /// Sleeps until [stirred](Self::stir), unless somebody holds a processor.
    pub(crate) fn doze(&self, all_idle: impl FnOnce() -> bool) {
        self.0.store(ASLEEP, Relaxed); // Relaxed: ordered by the fence.
        arch::full_fence(); // Step 2.
        if all_idle() {
            while self.0.load(Relaxed) == ASLEEP {
                let _ = sys::futex_wait(&self.0, ASLEEP, Deadline::NEVER);
            }
        }
        self.0.store(AWAKE, Relaxed); // Relaxed: a waker that misses this wakes nobody.
    }
}
