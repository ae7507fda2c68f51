//! Starting a thread at a point in time.

use super::timers::Timer;
use crate::runtime::Runtime;
use crate::sched;
use crate::time::Deadline;
use crate::vthread::Ready;

/// A thread that has been made but not started; a timer will start it.
pub struct DelayedStart {
    runtime: &'static Runtime,
    timer: Timer,
}

impl DelayedStart {
    /// Takes charge of a thread that has not been started. It starts when the timer set by
    /// [`arm`](Self::arm) fires.
    pub fn new(thread: Ready) -> DelayedStart {
        DelayedStart {
            runtime: thread.core().runtime(),
            timer: Timer::for_start(thread),
        }
    }

    /// Sets the time. To be called once.
    ///
    /// # Safety
    /// This stays in its place until [`cancel`](Self::cancel) has returned.
    pub unsafe fn arm(&self, deadline: Deadline) {
        // SAFETY: the caller's contract; the timer itself has the right to run the thread.
        unsafe { self.timer.arm(self.runtime, deadline) };
    }

    /// Drops the thread without running it, unless its time has come. Returns whether it was
    /// dropped.
    pub fn cancel(&self) -> bool {
        match self.timer.disarm_start() {
            Some(thread) => {
                sched::abandon(thread);
                true
            }
            None => false,
        }
    }
}
