//! Spare processors: they stand in while all others are stuck.
//!
//! Nothing can take a processor from a carrier whose thread computes, waits in the kernel for a
//! file, or spins until another thread has run. But the kernel can share the cores between
//! carriers. So when every processor has been stuck in one thread for a while and other threads
//! wait, the monitor (`carriers/monitor.rs`) adds a processor with a carrier of its own. A
//! computing thread then shares its core with the rest as a platform thread would. When there are
//! more processors than parallelism plus stuck ones, the monitor lets one go again.
//!
//! | state    | entered                          | left                                           |
//! |----------|----------------------------------|------------------------------------------------|
//! | NEW      | at start                         | `add`: to ACTIVE, with a new carrier           |
//! | ACTIVE   | `add`                            | `rest`, by its carrier, when there is nothing to run: to RESTING; `dismiss`: to LEAVING |
//! | LEAVING  | `dismiss`                        | `rest`, by its carrier, at its next look for work: to RESTING |
//! | RESTING  | `rest`, once the queue is empty  | `add`: to ACTIVE, and wakes the carrier        |
//!
//! Only the monitor calls `add` and `dismiss`; only the carrier calls `rest`. Only the holder puts
//! threads into a processor's queue, so no thread can be left behind in the queue of a resting one.
//! Stacks and reservations go back as well, so that the running processors can use them. Its timers
//! are in another processor's shard.
//!
//! `crates/pirn-model` checks this file: `spare_model.rs`. Each Acquire and each Release, weakened
//! to Relaxed, is found by one of its models.

use crate::primitives::{
    AtomicU32, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::sys::Sleeper;
use crate::time::Deadline;

const NEW: u32 = 0;
const ACTIVE: u32 = 1;
const LEAVING: u32 = 2;
const RESTING: u32 = 3;

/// A spare processor.
pub struct Spare {
    state: AtomicU32,
    carrier: Sleeper,
}

/// The number of spare processors that are neither NEW nor RESTING.
pub struct InUse(AtomicUsize);

impl InUse {
    /// Returns a count of 0.
    pub(crate) fn new() -> InUse {
        InUse(AtomicUsize::new(0))
    }

    /// Returns how many spare processors are in use.
    pub fn count(&self) -> usize {
        // Relaxed: only the monitor must not miss an addition, and it makes them itself.
        self.0.load(Relaxed)
    }
}

impl Spare {
    /// Returns a spare processor in state NEW.
    pub(crate) fn new() -> Spare {
        Spare {
            state: AtomicU32::new(NEW),
            carrier: Sleeper::new(),
        }
    }

    /// Returns whether it has a carrier that runs threads.
    pub fn is_in_use(&self) -> bool {
        // Relaxed: the monitor sees its own additions; other readers may see them late.
        matches!(self.state.load(Relaxed), ACTIVE | LEAVING)
    }

    /// Returns whether it is in use, and not about to leave.
    pub(crate) fn is_active(&self) -> bool {
        self.state.load(Relaxed) == ACTIVE // Relaxed: as in `is_in_use`.
    }

    /// Returns whether its carrier should rest as soon as it can.
    #[inline]
    pub(crate) fn is_leaving(&self) -> bool {
        // Relaxed: carries no other data. A carrier that sees it late rests a little later.
        self.state.load(Relaxed) == LEAVING
    }

    /// Puts it to work, unless it works already. For a NEW one, `start` must start a carrier, and
    /// returns `false` if it cannot. Returns whether it works now and did not before. The monitor's
    /// alone.
    pub(crate) fn add(&self, in_use: &InUse, start: impl FnOnce() -> bool) -> bool {
        // Acquire: pairs with the Release in `rest`: the queue that the carrier has emptied.
        let state = self.state.load(Acquire);
        if state == ACTIVE || state == LEAVING {
            return false;
        }
        in_use.0.fetch_add(1, Relaxed); // Relaxed: see `count`.
        // Release: pairs with the Acquire in `rest`: the carrier sees what the monitor wrote. A
        // swap, as `wake` requires.
        self.state.swap(ACTIVE, Release);
        if state == RESTING {
            self.carrier.wake();
            return true;
        }
        let started = start();
        if !started {
            self.state.store(NEW, Relaxed); // Relaxed: there is no carrier.
            in_use.0.fetch_sub(1, Relaxed); // Relaxed: see `count`.
        }
        started
    }

    /// Makes it rest as soon as its carrier looks for work again. Only the monitor calls this.
    pub(crate) fn dismiss(&self) {
        // Relaxed: carries no other data. Failure: it may be resting already.
        let _ = (self.state).compare_exchange(ACTIVE, LEAVING, Relaxed, Relaxed);
    }

    /// Rests until the processor is needed again. Only its carrier calls this, after emptying it.
    pub(crate) fn rest(&self, in_use: &InUse) {
        in_use.0.fetch_sub(1, Relaxed); // Relaxed: see `count`.
        // Release: pairs with the Acquire in `add`. A swap, because `dismiss` may come meanwhile.
        self.state.swap(RESTING, Release);
        // Acquire: pairs with the Release in `add`.
        while self.state.load(Acquire) == RESTING {
            // Relaxed: the load above follows.
            let is_added = || self.state.load(Relaxed) != RESTING;
            self.carrier.sleep_unless(Deadline::NEVER, is_added);
        }
    }
}
