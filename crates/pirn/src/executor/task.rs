//! The handle of a task.

use super::cell::TaskCell;
use super::error::TaskError;
use super::watched::{GaveUp, WaitLimit};
use crate::thread::Thread;
use core::fmt;
use core::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// The handle of a task of an [executor](super::ThreadPerTask): the right to cancel the task, to
/// wait for it, and to take its result.
///
/// Dropping the handle does not affect the task: the task goes on, closing the executor waits for
/// it, and its result is dropped.
///
/// Async code can await it: see [`TaskFuture`].
///
/// # Examples
/// ```
/// use pirn::executor::ThreadPerTask;
///
/// let executor = ThreadPerTask::new();
/// let task = executor.submit(|| 6 * 7)?;
/// assert_eq!(task.join()?, 42);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[must_use = "nobody will know how the task ends; `let _ = …` says that this is meant"]
pub struct Task<T>(Arc<TaskCell<T>>);

impl<T> Task<T> {
    pub(super) fn new(cell: Arc<TaskCell<T>>) -> Task<T> {
        Task(cell)
    }

    /// Waits for the end of the task and returns its result.
    ///
    /// An interrupt of the waiting thread does not end this wait, as it does that of
    /// [`join_interruptible`](Self::join_interruptible).
    ///
    /// # Errors
    /// [`TaskError::Panicked`] if the task panicked. [`TaskError::Cancelled`] if it was cancelled;
    /// then this returns at once, even if the task still runs.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::{TaskError, ThreadPerTask};
    ///
    /// let executor = ThreadPerTask::new();
    /// assert_eq!(executor.submit(|| 6 * 7)?.join()?, 42);
    /// let failed = executor.submit(|| panic!("out of stock"))?.join();
    /// assert!(matches!(failed, Err(TaskError::Panicked(_))));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn join(self) -> Result<T, TaskError> {
        self.0.take()
    }

    /// Waits for the end of the task, and returns its result, or the task again if `timeout` has
    /// passed before.
    ///
    /// # Errors
    /// The task, so that it can be waited for again. The inner errors are those of
    /// [`join`](Self::join).
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread;
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(thread::park)?;
    /// let Err(task) = task.join_timeout(Duration::from_millis(1)) else {
    ///     return Ok(()); // `park` may return at any time.
    /// };
    /// task.cancel();
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn join_timeout(self, timeout: Duration) -> Result<Result<T, TaskError>, Task<T>> {
        self.try_take(WaitLimit::timeout(timeout))
    }

    /// Waits for the end of the task, and returns its result, or the task again if the waiting
    /// thread has been interrupted before.
    ///
    /// The thread's flag is still set then, and the task goes on.
    ///
    /// # Errors
    /// The task, so that it can be waited for again. The inner errors are those of
    /// [`join`](Self::join).
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(thread::park_interruptible)?;
    /// thread::current().interrupt();
    /// let task = task.join_interruptible().unwrap_err();
    /// assert!(thread::take_interrupt());
    /// task.cancel();
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn join_interruptible(self) -> Result<Result<T, TaskError>, Task<T>> {
        self.try_take(WaitLimit::UNTIL_INTERRUPTED)
    }

    fn try_take(self, limit: WaitLimit) -> Result<Result<T, TaskError>, Task<T>> {
        self.wait(limit).map_err(|_| self)
    }

    /// Waits for the end and takes the result; after that, the task may only be dropped.
    pub(super) fn wait(&self, limit: WaitLimit) -> Result<Result<T, TaskError>, GaveUp> {
        self.0.try_take(limit)
    }

    /// Cancels the task: for all that wait for it, it ends at once with [`TaskError::Cancelled`].
    ///
    /// A task that has not started never will. The thread of a running task is
    /// [interrupted](Thread::interrupt); the task has to react to that by ending, and closing the
    /// executor still waits for its end.
    ///
    /// Returns whether this call has cancelled the task: `false` if the task had ended or been
    /// cancelled before; then the call has no effect.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::{TaskError, ThreadPerTask};
    /// use pirn::thread;
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| thread::sleep_interruptible(Duration::from_secs(3600)))?;
    /// assert!(task.cancel());
    /// assert!(matches!(task.join(), Err(TaskError::Cancelled)));
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn cancel(&self) -> bool {
        self.0.cancel()
    }

    /// Returns whether the task has ended in any way. If so, [`join`](Self::join) returns at once.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use std::sync::mpsc;
    ///
    /// let executor = ThreadPerTask::new();
    /// let (sender, receiver) = mpsc::channel::<()>();
    /// let task = executor.submit(move || receiver.recv())?;
    /// assert!(!task.is_done());
    /// drop(sender);
    /// executor.close(); // waits for it
    /// assert!(task.is_done());
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn is_done(&self) -> bool {
        self.0.has_ended()
    }

    /// Returns whether the task was cancelled before its end.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(thread::park_interruptible)?;
    /// assert!(!task.is_cancelled());
    /// task.cancel();
    /// assert!(task.is_cancelled());
    /// # Ok::<(), pirn::executor::SubmitError>(())
    /// ```
    pub fn is_cancelled(&self) -> bool {
        self.0.is_cancelled()
    }

    /// Returns the thread that runs the task.
    ///
    /// Interrupt this thread to ask the task to end without giving up its result. If it is a
    /// platform thread that has not started yet, this waits until it has.
    ///
    /// # Examples
    /// ```
    /// use pirn::executor::ThreadPerTask;
    /// use pirn::thread;
    /// use std::time::Duration;
    ///
    /// let executor = ThreadPerTask::new();
    /// let task = executor.submit(|| {
    ///     match thread::sleep_interruptible(Duration::from_secs(3600)) {
    ///         Ok(()) => "all of it",
    ///         Err(_) => "a part of it",
    ///     }
    /// })?;
    /// task.thread().interrupt();
    /// assert_eq!(task.join()?, "a part of it");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn thread(&self) -> Thread {
        self.0.thread()
    }
}

impl<T> fmt::Debug for Task<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = match (self.is_cancelled(), self.is_done()) {
            (true, _) => "cancelled",
            (false, true) => "done",
            (false, false) => "running",
        };
        f.debug_tuple("Task")
            .field(&format_args!("{state}"))
            .finish()
    }
}

impl<T> IntoFuture for Task<T> {
    type Output = Result<T, TaskError>;
    type IntoFuture = TaskFuture<T>;

    fn into_future(self) -> TaskFuture<T> {
        TaskFuture(self.0)
    }
}

/// Waits for a [`Task`] in async code. Made by `task.await`.
///
/// Dropping the future, like dropping the task, does not cancel the task.
///
/// # Examples
/// ```
/// use pirn::executor::{Task, TaskError};
///
/// async fn double(task: Task<u32>) -> Result<u32, TaskError> {
///     Ok(2 * task.await?)
/// }
/// ```
#[must_use = "futures do nothing unless polled"]
pub struct TaskFuture<T>(Arc<TaskCell<T>>);

impl<T> Future for TaskFuture<T> {
    type Output = Result<T, TaskError>;

    /// Polls for the result. It is never ready again once it has been.
    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        self.0.poll_take(context)
    }
}

impl<T> fmt::Debug for TaskFuture<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TaskFuture").finish_non_exhaustive()
    }
}
