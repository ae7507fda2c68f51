//! Starting a thread at a point in time.

use super::timers::Timer;
use crate::sched::Runnable;
use crate::time::Deadline;
use crate::vthread::ThreadRef;

/// A thread that has been made, and that a timer starts.
pub(crate) struct DelayedStart {
    thread: ThreadRef,
    timer: Timer,
}

impl DelayedStart {
    /// Takes charge of a thread that nobody has started. It begins when the timer fires that
    /// [`arm`](Self::arm) sets.
    pub(crate) fn new(thread: ThreadRef) -> DelayedStart {
        // So the timer wakes it as if it had parked before its first instruction.
        let parked = thread.handshake.parked();
        debug_assert!(parked, "a thread that was just made has been woken");
        let timer = Timer::for_start(&thread);
        DelayedStart { thread, timer }
    }

    /// Sets the time. Once.
    ///
    /// # Safety
    /// This stays in its place until [`cancel`](Self::cancel) has returned.
    pub(crate) unsafe fn arm(&self, deadline: Deadline) {
        // SAFETY: the caller's contract; the thread is kept by our reference.
        unsafe { self.timer.arm(deadline) };
    }

    /// Drops the thread unrun, unless the time has come. Returns whether it has not.
    pub(crate) fn cancel(&self) -> bool {
        let early = self.timer.disarm();
        if early {
            // The right to run it, and nobody will.
            drop(Runnable::of(self.thread.as_ptr()));
        }
        early
    }
}
