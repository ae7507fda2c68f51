//! The protocol of reviews: every mark of a thread that waits is looked at, though all carriers
//! sleep.
//!
//! ```text
//!   DUE     0  --mark-->  in a second  --the first step-->  0
//!   STEP    0  --begins-->  BUSY  --more are left-->  in a millisecond  --goes on-->  BUSY
//!                             '-----the last step-->  0
//! ```
//!
//! The carrier that makes STEP busy takes the step alone. A mark and the first step of a review go
//! by one order:
//!
//! ```text
//!   thread that waits                    carrier that takes the first step
//!   1. join the waiters, set the mark    a. DUE = 0
//!   2. fence                             b. fence
//!   3. is DUE 0? then DUE = in a second  c. is the mark set? then clear it, and look at the waiters
//! ```
//!
//! Fences have one order: if 2 comes before b, the carrier sees the mark at c; otherwise the thread
//! sees at 3 that DUE is 0. A thread that finds the mark set at 1 leaves it: it holds the waiters'
//! lock, so that the look at the waiters is still to come.
//!
//! A sleeping carrier attends to a review as to a timer (`reactor/attendance.rs`). So a
//! carrier that changes DUE or STEP either attends before it sleeps, or has another carrier do so.
//! A thread that does the latter, and sees STEP BUSY behind its fence, leaves DUE to the carrier
//! that takes the step.
//!
//! Rejected: each carrier looks at DUE before it sleeps. One that stood in for others, and then
//! rested, left a review behind for which no carrier woke.
//!
//! `crates/pirn-model` checks this file: `review_model.rs`. Each of the two fences, removed or
//! weakened to AcqRel, and the Acquire and the Release of STEP, weakened to Relaxed, are found by
//! one of its models.

use crate::arch;
use crate::primitives::{
    AtomicU32, AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys;

const AFTER_NS: u64 = 1_000_000_000;
/// The time between two steps.
const STEP_EVERY_NS: u64 = 1_000_000;

/// The mark, in the flags of a descriptor: a thread has begun to wait since the last review.
pub(crate) const UNREVIEWED: u32 = 64;
/// No review is due.
const NEVER: u64 = u64::MAX;
/// A step is being taken.
const BUSY: u64 = NEVER;

/// When reviews are due. All fields are 0 at first.
pub(crate) struct Schedule {
    /// When the next review is due; 0: no thread has begun to wait since the last one began.
    pub(crate) due: AtomicU64,
    /// When the next step of the review that has begun is due; 0: no review has begun.
    pub(crate) step: AtomicU64,
    /// The number that the next step begins with. Only the carrier that takes a step uses it.
    pub(crate) first: AtomicU32,
}

/// Returns whether a thread has begun to wait since the last review.
#[inline]
pub(crate) fn is_marked(flags: &AtomicU32) -> bool {
    flags.load(Relaxed) & UNREVIEWED != 0 // Relaxed: ordered by the fence, or the waiters' lock.
}

/// Clears the mark, which is set. The caller then looks at the waiters, under their lock.
pub(crate) fn unmark(flags: &AtomicU32) {
    flags.fetch_and(!UNREVIEWED, Relaxed); // Relaxed: ordered by the waiters' lock.
}

impl Schedule {
    /// Begins anew, in the child of a fork that has no runtime yet.
    #[allow(dead_code)] // the models do not fork
    pub(crate) fn reset(&self) {
        self.due.store(0, Relaxed); // Relaxed, all: there is no runtime yet.
        self.step.store(0, Relaxed);
        self.first.store(0, Relaxed);
    }

    /// Marks a descriptor that is not [marked](is_marked), for a thread that has joined its
    /// waiters and holds their lock. Returns whether that makes a review due. If so, the caller
    /// sees to it that a carrier attends.
    pub(crate) fn mark(&self, flags: &AtomicU32) -> bool {
        flags.fetch_or(UNREVIEWED, Relaxed); // Relaxed: ordered by the fence.
        arch::fence_after_atomic(); // Step 2.
        let none = self.due.load(Relaxed) == 0; // Relaxed: ordered by the fence.
        if none {
            let due = sys::now() + AFTER_NS;
            self.due.store(due, Relaxed); // Relaxed: ordered by the fences of `attendance`.
        }
        none
    }

    /// Returns when the next review, or a step of one, is due; `u64::MAX`: never.
    pub(crate) fn due(&self) -> u64 {
        // Relaxed: ordered by the fences of `attendance`.
        match (self.step.load(Relaxed), self.due.load(Relaxed)) {
            (0, 0) => NEVER,
            (0, due) => due,
            (step, _) => step,
        }
    }

    /// Takes a step, unless none is due or another carrier takes it. `review` looks at the marks
    /// from a number on, and returns the number to go on with, if there are more.
    pub(crate) fn take_step(&self, review: impl FnOnce(u32) -> Option<u32>) {
        let step = self.step.load(Relaxed); // Relaxed: the exchange checks it.
        // Relaxed: the exchange checks it.
        let is_due = step != BUSY && (step != 0 || self.due.load(Relaxed) != 0);
        // Acquire: pairs with the Release below: `first`, and step b of the review's first step.
        // Relaxed: another carrier takes the step.
        if !is_due
            || self
                .step
                .compare_exchange(step, BUSY, Acquire, Relaxed)
                .is_err()
        {
            return;
        }
        if step == 0 {
            self.due.swap(0, Relaxed); // Relaxed: ordered by the fence.
            arch::fence_after_atomic(); // Step b.
        }
        let next = review(self.first.load(Relaxed)); // Relaxed: ordered by the exchange.
        self.first.store(next.unwrap_or(0), Relaxed); // Relaxed: published by the next store.
        let step = next.map_or(0, |_| sys::now() + STEP_EVERY_NS);
        self.step.store(step, Release); // Release: pairs with the Acquire above.
    }
}
