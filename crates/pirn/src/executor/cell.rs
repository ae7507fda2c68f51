//! The state that a task's thread, its handle and its executor share.
//!
//! | from | to | by |
//! |---|---|---|
//! | `Open` | `Ended` | its thread: `run` |
//! | `Open` | `Ended(Err(Cancelled))` | `cancel` |
//! | `Ended` | `Taken` | the handle: `take` |
//!
//! A task that is cancelled before its thread checks for that never runs. A task that is cancelled
//! later may go on, but its result is no longer wanted, and its thread drops it.

use super::error::TaskError;
use super::watched::{GaveUp, WaitLimit, Watched};
use crate::thread::Panic;
use crate::thread::Thread;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn_rt::vthread::body::caught;
use std::mem;
use std::task::{Context, Poll};

pub(super) struct TaskCell<T> {
    progress: Watched<Progress<T>>,
    /// Whether `progress` is not `Open`. Written under its lock.
    ended: AtomicBool,
    thread: Watched<Runner>,
}

/// The thread that runs a task.
enum Runner {
    /// The thread is not known yet; `interrupted` says whether to interrupt it as soon as it is.
    Unknown {
        interrupted: bool,
    },
    Known(Thread),
}

impl Runner {
    fn thread(&self) -> Option<Thread> {
        match self {
            Runner::Unknown { .. } => None,
            Runner::Known(thread) => Some(thread.clone()),
        }
    }
}

enum Progress<T> {
    Open,
    Ended(Result<T, TaskError>),
    Taken,
}

impl<T> Progress<T> {
    fn take(&mut self) -> Option<Result<T, TaskError>> {
        let ended = matches!(self, Progress::Ended(_));
        match ended.then(|| mem::replace(self, Progress::Taken)) {
            Some(Progress::Ended(result)) => Some(result),
            _ => None,
        }
    }
}

impl<T> TaskCell<T> {
    pub(super) fn new() -> TaskCell<T> {
        TaskCell {
            progress: Watched::new(Progress::Open),
            ended: AtomicBool::new(false),
            thread: Watched::new(Runner::Unknown { interrupted: false }),
        }
    }

    /// Runs the task, unless it has been cancelled.
    pub(super) fn run(&self, f: impl FnOnce() -> T) {
        if self.has_ended() {
            return;
        }
        let result = caught(f).map_err(|payload| TaskError::Panicked(Panic::new(payload)));
        let unwanted = self.end(result);
        drop(unwanted); // Not under the lock, and before the executor takes the task for ended.
    }

    /// Cancels the task. Returns whether this call has ended it.
    pub(super) fn cancel(&self) -> bool {
        let cancelled = !self.has_ended() && self.end(Err(TaskError::Cancelled)).is_none();
        if cancelled {
            self.interrupt();
        }
        cancelled
    }

    /// Ends the task, or returns the result if the task has ended already.
    fn end(&self, result: Result<T, TaskError>) -> Option<Result<T, TaskError>> {
        self.progress.change(|progress| match progress {
            Progress::Open => {
                *progress = Progress::Ended(result);
                // Release: pairs with the Acquire in `has_ended`: whoever sees the flag sees what
                // the task did.
                self.ended.store(true, Ordering::Release);
                None
            }
            _ => Some(result),
        })
    }

    pub(super) fn has_ended(&self) -> bool {
        // Acquire: see `end`.
        self.ended.load(Ordering::Acquire)
    }

    pub(super) fn is_cancelled(&self) -> bool {
        let is = |progress: &mut Progress<T>| {
            matches!(progress, Progress::Ended(Err(TaskError::Cancelled)))
        };
        self.has_ended() && self.progress.with(is)
    }

    /// Waits for the end and takes the result. Called at most once.
    pub(super) fn take(&self) -> Result<T, TaskError> {
        if !self.has_ended()
            && let Some(thread) = self.thread.with(|runner| runner.thread())
        {
            thread.lend_to(); // So it need not wait for a carrier to wake up.
        }
        self.progress.wait_forever(Progress::take)
    }

    /// Takes the result as [`take`](Self::take) does, within limits.
    pub(super) fn try_take(&self, limit: WaitLimit) -> Result<Result<T, TaskError>, GaveUp> {
        self.progress.wait(limit, Progress::take)
    }

    /// Takes the result as [`take`](Self::take) does, for a future.
    pub(super) fn poll_take(&self, context: &mut Context<'_>) -> Poll<Result<T, TaskError>> {
        self.progress.poll(context, Progress::take)
    }

    /// Records which thread runs the task. Called by that thread and by the one that started it;
    /// the first call counts.
    pub(super) fn attach(&self, thread: Thread) {
        let interrupted = self.thread.change(|runner| match *runner {
            Runner::Known(_) => false,
            Runner::Unknown { interrupted } => {
                *runner = Runner::Known(thread);
                interrupted
            }
        });
        if interrupted {
            self.interrupt();
        }
    }

    /// Waits until the thread is known, which takes no longer than to start one.
    pub(super) fn thread(&self) -> Thread {
        self.thread.wait_forever(|runner| runner.thread())
    }

    /// Interrupts the task's thread, at its start if it has not started yet.
    fn interrupt(&self) {
        let thread = self.thread.with(|runner| {
            if let Runner::Unknown { interrupted } = runner {
                *interrupted = true;
            }
            runner.thread()
        });
        // Outside the lock, because this calls the user's listeners.
        if let Some(thread) = thread {
            thread.interrupt();
        }
    }
}

/// The executor's view of its tasks.
pub(super) trait Interrupt: Send + Sync {
    fn interrupt(&self);
}

impl<T: Send> Interrupt for TaskCell<T> {
    fn interrupt(&self) {
        TaskCell::interrupt(self);
    }
}
