//! The current run of a carrier, and the CPU time of the thread that runs, for readers on other
//! platform threads: a seqlock, whose sequence is the time at which the run began.
//!
//! ```text
//!   the carrier, between two runs              a reader
//!   1 began = BETWEEN, fence                   a began (not BETWEEN), used
//!   2 used += the run that ends                b the carrier's CPU time
//!   3 began = now                              c fence, began as at a
//! ```
//!
//! A reader that sees the new `used` with the old `began` would count the run twice; one that sees
//! the old `used` with the new `began` would leave it out. In both cases it sees at c that `began`
//! has changed: the fence at 1 pairs with the fence at c, the store at 3 with the load at a.
//!
//! `crates/pirn-model` checks this file: `run_model.rs`.

use crate::primitives::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The run has no beginning for the moment.
const BETWEEN: u64 = u64::MAX;

/// The CPU time of a carrier, in nanoseconds, when its current run began; 0: not known.
pub(super) struct Began(pub(super) AtomicU64);

impl Began {
    /// Forgets it.
    #[inline]
    pub(super) fn reset(&self) {
        self.0.store(0, Relaxed); // Relaxed: no thread is mounted yet.
    }

    /// Returns when the run began; 0: not known. The carrier calls this.
    #[inline]
    pub(super) fn get(&self) -> u64 {
        self.0.load(Relaxed) // Relaxed: the carrier's own, or from `settle`, with no other data.
    }

    /// Lets the run begin at `time`, if its beginning is not known. Any thread may call this.
    pub(super) fn settle(&self, time: impl FnOnce() -> u64) {
        if self.get() == 0 {
            let _ = self.0.compare_exchange(0, time(), Relaxed, Relaxed); // Relaxed: no other data.
        }
    }

    /// Adds `run` to what a thread has `used`, and begins the next run at `time`. The carrier calls
    /// this, which has that thread mounted: no other thread writes either.
    pub(super) fn end(&self, used: &AtomicU64, run: u64, time: u64) {
        self.0.store(BETWEEN, Relaxed);
        fence(Release); // Pairs with the fence in `read`.
        used.store(used.load(Relaxed) + run, Relaxed);
        self.begin(time);
    }

    /// Begins a run at `time`. The carrier calls this.
    #[inline]
    pub(super) fn begin(&self, time: u64) {
        self.0.store(time, Release); // Release: pairs with the Acquire in `read`.
    }

    /// Returns what a thread has used, its current run on this carrier included, whose CPU time is
    /// `now()`. `None`: the run has ended meanwhile, or is not known.
    pub(super) fn read(&self, used: &AtomicU64, now: impl FnOnce() -> u64) -> Option<u64> {
        let began = self.0.load(Acquire); // Acquire: pairs with the Release in `begin`.
        if began == BETWEEN || began == 0 {
            return None;
        }
        let used = used.load(Relaxed); // Relaxed: ordered by the fence.
        let run = now().saturating_sub(began);
        fence(Acquire); // Pairs with the fence in `end`.
        (self.get() == began).then_some(used + run)
    }
}
