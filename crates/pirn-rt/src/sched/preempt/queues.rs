//! The threads of a runtime that are in no ordinary queue: urgent threads and preempted threads.
//!
//! [`preempt`](super) puts a thread that computes aside when other threads wait. Carriers then take
//! threads in this order:
//!
//! 1. an urgent thread. A thread is urgent if an event woke it for which another thread was
//!    preempted, or if it was woken by a carrier that awoke for events when no processor was free
//!    for that carrier, or when other threads had been put aside;
//! 2. a thread that was preempted for urgent threads in its first slice: it continues the slice;
//! 3. a computing thread, which is one that has used up a slice, if no computing thread has run for
//!    [`OVERDUE_NS`];
//! 4. a thread from the other sources: the processor's own queue, the injector, events;
//! 5. a computing thread.
//!
//! A computing thread that was preempted for an urgent thread goes to the front of the computing
//! queue, and continues its slice. One that has used its slice up goes to the end.
//!
//! The second place has a queue of its own, because any thread may be preempted in its first slice:
//! also one of ten thousand that serve a connection each, if the kernel or the hypervisor took the
//! core away meanwhile. In the computing queue they starved, the newest first, for up to two
//! seconds.

use super::request::Resumed;
use crate::sched::Holder;
use crate::sched::ready_queue::ReadyQueue;
use crate::sys;
use crate::vthread::Ready;
use crate::vthread::record::Used;
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// While others are never out of work, a computing thread runs this often.
const OVERDUE_NS: u64 = 2_000_000;
/// After this many urgent threads in a row, a carrier takes another thread, if there is one: events
/// may come for as long as there is work.
const MOST_URGENT: u32 = 64;
/// A shorter slice would cost more than it is worth.
const SHORT_NS: u64 = 1_000_000;

/// See the module's documentation.
pub struct Preempted {
    /// How long a thread may compute while others wait; 0: for ever.
    pub(crate) slice_ns: u64,
    urgent: ReadyQueue,
    interrupted: ReadyQueue,
    computing: ReadyQueue,
    /// When a computing thread last ran: its mount, and its end if it was put aside.
    last: AtomicU64,
}

impl Preempted {
    /// Returns the state with no threads.
    #[inline]
    pub(crate) fn new(slice_ns: u64) -> Preempted {
        Preempted {
            slice_ns,
            urgent: ReadyQueue::new(),
            interrupted: ReadyQueue::new(),
            computing: ReadyQueue::new(),
            last: AtomicU64::new(0),
        }
    }

    /// Returns the number of urgent threads.
    #[inline]
    pub(crate) fn urgent(&self) -> usize {
        self.urgent.len()
    }

    /// Returns the number of threads here.
    #[inline]
    pub fn len(&self) -> usize {
        self.urgent.len() + self.interrupted.len() + self.computing.len()
    }

    /// Returns whether there are any threads here.
    #[inline]
    pub(crate) fn any(&self) -> bool {
        self.len() > 0
    }

    /// Adds a thread that is to run before all others.
    #[inline]
    pub(crate) fn push_urgent(&self, thread: Ready) {
        self.urgent.push(thread);
    }

    /// Adds a thread that has been put aside after `elapsed` ns of its slice. `computes`: it has
    /// used up a slice before; `over`: it has used up this one.
    pub(crate) fn put_aside(&self, thread: Ready, elapsed: u64, computes: bool, over: bool) {
        if computes {
            // A slice may take longer than it should. The others must come between two of them.
            self.last.store(sys::now(), Relaxed); // Relaxed: see `is_overdue`.
        }
        if over || elapsed >= self.slice_ns {
            thread.core().used.set(Used::new(0, true));
            self.computing.push(thread);
        } else {
            thread.core().used.set(Used::new(elapsed, computes));
            match computes {
                true => self.computing.push_first(thread),
                false => self.interrupted.push(thread),
            }
        }
    }

    /// Returns whether a computing thread has waited for too long.
    fn is_overdue(&self) -> bool {
        // Relaxed: by a stale time a computing thread runs a little early. Another carrier's clock
        // may be a little ahead.
        let since = sys::now().saturating_sub(self.last.load(Relaxed));
        self.computing.len() > 0 && since >= OVERDUE_NS
    }

    /// Returns for how long a thread may go on while others wait.
    ///
    /// `computes`: the thread has used up a slice before. `queued`: threads wait in the ordinary
    /// queues, which the thread may be filling itself. Threads that were preempted in their first
    /// slice count as queued. Computing threads share the `processors`.
    #[inline]
    pub(crate) fn limit(&self, computes: bool, queued: bool, processors: usize) -> Option<u64> {
        let slice = self.slice_ns;
        let short = slice.min(SHORT_NS);
        // An interrupted thread counts. Otherwise it would wait for ever for an urgent thread that
        // spins until the interrupted one goes on.
        let queued = queued || self.interrupted.len() > 0;
        let for_queued = queued.then_some(if computes { short } else { slice });
        let fellows = self.computing.len().div_ceil(processors) as u64;
        let for_fellows = slice.checked_div(fellows).map(|share| share.max(short));
        [for_queued, for_fellows].into_iter().flatten().min()
    }
}

impl Holder<'_> {
    /// Takes an urgent thread, or an interrupted one, or a computing one that has waited for too
    /// long.
    #[cold]
    pub(crate) fn take_preferred(self) -> Option<Ready> {
        let queues = &self.runtime().preempted;
        self.put_back_next();
        if self.urgent_in_a_row.get() < MOST_URGENT
            && let Some(thread) = queues.urgent.pop(1, |_| ())
        {
            self.urgent_in_a_row.set(self.urgent_in_a_row.get() + 1);
            self.return_soon();
            return Some(thread);
        }
        self.urgent_in_a_row.set(0);
        if let Some(thread) = queues.interrupted.pop(1, |_| ()) {
            self.go_on(&thread);
            return Some(thread);
        }
        match queues.is_overdue() {
            true => self.take_computing(),
            false => None,
        }
    }

    /// Takes the first computing thread, and lets it go on with its slice.
    #[inline]
    pub(crate) fn take_computing(self) -> Option<Ready> {
        let queues = &self.runtime().preempted;
        let thread = queues.computing.pop(1, |_| ())?;
        let now = self.go_on(&thread);
        queues.last.store(now, Relaxed); // Relaxed: see `is_overdue`.
        Some(thread)
    }

    /// Lets a thread that was put aside, and runs next, go on with its slice. Returns the time.
    fn go_on(self, thread: &Ready) -> u64 {
        let (now, used) = (sys::now(), thread.core().used.get());
        let slice = Resumed {
            since: now.saturating_sub(used.nanos()),
            computes: used.computes(),
        };
        self.request.resume(self.count_look(), slice);
        now
    }
}

#[cfg(test)]
mod tests;
