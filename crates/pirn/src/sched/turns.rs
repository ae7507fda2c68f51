//! Whose turn it is among the threads of a runtime that are not in the ordinary queues: those that
//! are urgent, and those that have been preempted.
//!
//! A thread that computes is put aside, by [`preempt`](super::preempt), when others wait. Carriers
//! then take threads in this order:
//!
//! 1. urgent threads: those that were woken by the events for which a thread was preempted;
//! 2. a computing thread, if none has had its turn for [`OVERDUE_NS`];
//! 3. what there was before preemption: own queue, injector, events;
//! 4. a computing thread.
//!
//! A thread that was put aside for something urgent comes back to the front of the computing ones,
//! and goes on with its slice. One that has used its slice up goes to their end.

use super::Processor;
use super::injector::Injector;
use super::turn::Resumed;
use crate::sys;
use crate::vthread::Ready;
use crate::vthread::record::Used;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// While others are never out of work, a computing thread gets a turn this often.
const OVERDUE_NS: u64 = 2_000_000;
/// A shorter slice would cost more than it is worth.
const SHORT_NS: u64 = 1_000_000;

/// See the module's documentation.
pub(crate) struct Turns {
    /// How long a thread may compute while others wait; 0: for ever.
    pub(crate) slice_ns: u64,
    urgent: Injector,
    computing: Injector,
    /// When a computing thread last had a turn: its beginning, and its end if it was put aside.
    last: AtomicU64,
}

impl Turns {
    /// Returns the state with no threads.
    pub(crate) fn new(slice_ns: u64) -> Turns {
        Turns {
            slice_ns,
            urgent: Injector::new(),
            computing: Injector::new(),
            last: AtomicU64::new(0),
        }
    }

    /// Returns the number of urgent threads.
    pub(super) fn urgent(&self) -> usize {
        self.urgent.len()
    }

    /// Returns whether there are any threads here.
    #[inline]
    pub(super) fn any(&self) -> bool {
        self.urgent.len() + self.computing.len() > 0
    }

    /// Adds a thread that is to run before all others.
    pub(super) fn push_urgent(&self, thread: Ready) {
        self.urgent.push(thread);
    }

    /// Adds a thread that has been put aside after `elapsed` ns of its turn. `computes`: it has
    /// used up a slice before; `over`: it has used up this one.
    pub(super) fn put_aside(&self, thread: Ready, elapsed: u64, computes: bool, over: bool) {
        if computes {
            // A turn may take longer than it should. The others must come between two of them.
            self.last.store(sys::now(), Relaxed); // Relaxed: a hint.
        }
        if over || elapsed >= self.slice_ns {
            thread.core().used.set(Used::new(0, true));
            self.computing.push(thread);
        } else {
            thread.core().used.set(Used::new(elapsed, computes));
            self.computing.push_first(thread);
        }
    }

    /// Returns whether a computing thread has waited for too long.
    fn is_overdue(&self) -> bool {
        // Relaxed: a hint. Another carrier's clock may be a little ahead.
        let since = sys::now().saturating_sub(self.last.load(Relaxed));
        self.computing.len() > 0 && since >= OVERDUE_NS
    }

    /// Returns for how long a thread may go on while others wait.
    ///
    /// It `computes` if it has used up a slice before. Threads wait in the queues, which it may be
    /// filling itself (`queued`), or have been put aside and share `processors`.
    pub(super) fn limit(&self, computes: bool, queued: bool, processors: usize) -> Option<u64> {
        let slice = self.slice_ns;
        let short = slice.min(SHORT_NS);
        let for_queued = queued.then_some(if computes { short } else { slice });
        let fellows = self.computing.len().div_ceil(processors) as u64;
        let for_fellows = slice.checked_div(fellows).map(|share| share.max(short));
        [for_queued, for_fellows].into_iter().flatten().min()
    }
}

impl Processor {
    /// Takes an urgent thread, or a computing one that has waited for too long.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[cold]
    pub(super) unsafe fn take_turn(&self) -> Option<Ready> {
        let turns = &self.runtime().turns;
        // SAFETY: the caller's contract.
        unsafe { self.put_back_next() };
        if let Some(thread) = turns.urgent.pop(1, |_| ()) {
            // SAFETY: the caller's contract.
            unsafe { self.return_soon() };
            return Some(thread);
        }
        match turns.is_overdue() {
            // SAFETY: the caller's contract.
            true => unsafe { self.take_computing() },
            false => None,
        }
    }

    /// Takes the first thread that has been put aside, and lets it go on with its slice.
    ///
    /// # Safety
    /// The caller holds this processor.
    pub(super) unsafe fn take_computing(&self) -> Option<Ready> {
        let turns = &self.runtime().turns;
        let thread = turns.computing.pop(1, |_| ())?;
        let (now, used) = (sys::now(), thread.core().used.get());
        turns.last.store(now, Relaxed); // Relaxed: a hint.
        let turn = Resumed {
            since: now.saturating_sub(used.nanos()),
            computes: used.computes(),
        };
        // SAFETY: the caller's contract.
        unsafe { self.turn.resume(self.count(), turn) };
        Some(thread)
    }
}

#[cfg(test)]
mod tests;
