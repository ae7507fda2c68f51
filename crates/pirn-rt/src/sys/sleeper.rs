//! How a platform thread of the runtime sleeps until others have work for it.
//!
//! ```text
//!   the sleeper                        a thread that has work for it
//!   1. state = ASLEEP                  a. change what the sleeper's condition reads
//!   2. fence                           b. fence
//!   3. is the condition true?          c. read the state: ASLEEP? then state = AWAKE, and wake it
//!   4. if not: sleep while ASLEEP
//!   5. state = AWAKE
//! ```
//!
//! Fences have one order: if 2 comes before b, c reads ASLEEP; otherwise the condition is true at
//! 3.
//!
//! `crates/pirn-model` checks this file: `sleeper_model.rs`. Each of the two fences, removed, and
//! the Acquire, weakened to Relaxed, is found by its models.

use crate::arch;
use crate::primitives::{
    AtomicU32,
    Ordering::{Acquire, Relaxed},
};
use crate::sys::{futex_wait, futex_wake};
use crate::time::Deadline;

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;

/// Whether one platform thread sleeps. 0: it is awake.
pub struct Sleeper(pub(crate) AtomicU32);

impl Sleeper {
    /// Returns the state of a thread that is awake.
    pub(crate) fn new() -> Sleeper {
        Sleeper(AtomicU32::new(AWAKE))
    }

    /// Sleeps until [woken](Self::wake) or until the deadline, unless the condition `has_work` is
    /// true. For one thread only.
    pub(crate) fn sleep_unless(&self, deadline: Deadline, has_work: impl FnOnce() -> bool) {
        self.0.store(ASLEEP, Relaxed); // Relaxed: ordered by the fence.
        arch::full_fence(); // Step 2.
        if !has_work() {
            // Acquire: pairs with the fence in `wake`: the condition is true afterwards.
            while self.0.load(Acquire) == ASLEEP && !deadline.has_passed() {
                let _ = futex_wait(&self.0, ASLEEP, deadline);
            }
        }
        self.0.store(AWAKE, Relaxed); // Relaxed: a waker that misses this wakes in vain.
    }

    /// Wakes the thread if it sleeps. The caller has just changed what the condition reads, by a
    /// read-modify-write. Async-signal-safe.
    #[inline]
    pub(crate) fn wake(&self) {
        arch::fence_after_atomic(); // Step b.
        // Relaxed, both: ordered by the fence.
        if self.0.load(Relaxed) == ASLEEP && self.0.swap(AWAKE, Relaxed) == ASLEEP {
            futex_wake(&self.0, 1);
        }
    }
}
