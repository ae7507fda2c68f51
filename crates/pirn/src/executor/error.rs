//! The errors of tasks.

use crate::thread::{Interrupted, Panic};
use core::fmt;
use std::error::Error;
use std::io;

/// Why a task could not be submitted. Its closure has been dropped, and has not been called.
///
/// # Examples
/// ```
/// use pirn::executor::{SubmitError, ThreadPerTask};
///
/// let executor = ThreadPerTask::new();
/// executor.shutdown();
/// let error = executor.submit(|| 7).unwrap_err();
/// assert!(matches!(error, SubmitError::Shutdown));
/// assert_eq!(error.to_string(), "the executor has been shut down and takes no more tasks");
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum SubmitError {
    /// The executor has been shut down.
    Shutdown,
    /// No thread could be created for it, for this reason.
    Spawn(io::Error),
}

impl fmt::Display for SubmitError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SubmitError::Shutdown => {
                f.write_str("the executor has been shut down and takes no more tasks")
            }
            SubmitError::Spawn(error) => {
                write!(f, "no thread could be created for the task: {error}")
            }
        }
    }
}

impl Error for SubmitError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            SubmitError::Shutdown => None,
            SubmitError::Spawn(error) => Some(error),
        }
    }
}

/// Why a task has no value.
///
/// # Examples
/// ```
/// use pirn::executor::{TaskError, ThreadPerTask};
///
/// let executor = ThreadPerTask::new();
/// let task = executor.submit(|| panic!("out of stock"))?;
/// match task.join() {
///     Err(TaskError::Panicked(panic)) => assert_eq!(panic.message(), Some("out of stock")),
///     other => unreachable!("{other:?}"),
/// }
/// # Ok::<(), pirn::executor::SubmitError>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum TaskError {
    /// The task panicked.
    Panicked(Panic),
    /// The task was [cancelled](super::Task::cancel) before its end.
    Cancelled,
}

impl fmt::Display for TaskError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TaskError::Panicked(panic) => write!(f, "the task {panic}"),
            TaskError::Cancelled => f.write_str("the task was cancelled before its end"),
        }
    }
}

impl Error for TaskError {}

/// Why [`invoke_all`](super::ThreadPerTask::invoke_all) has no results. The tasks that had started
/// are cancelled.
///
/// # Examples
/// ```
/// use pirn::executor::{InvokeAllError, SubmitError, ThreadPerTask};
///
/// let executor = ThreadPerTask::new();
/// executor.shutdown();
/// let error = executor.invoke_all([|| 7]).unwrap_err();
/// assert!(matches!(error, InvokeAllError::Submit(SubmitError::Shutdown)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeAllError {
    /// One of the tasks could not be submitted.
    Submit(SubmitError),
    /// The waiting thread was interrupted. Its flag is still set.
    Interrupted,
}

impl fmt::Display for InvokeAllError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvokeAllError::Submit(error) => error.fmt(f),
            InvokeAllError::Interrupted => {
                f.write_str("the thread was interrupted while it waited for tasks")
            }
        }
    }
}

impl Error for InvokeAllError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            InvokeAllError::Submit(error) => error.source(),
            InvokeAllError::Interrupted => Some(&Interrupted),
        }
    }
}

/// Why [`invoke_any`](super::ThreadPerTask::invoke_any) has no value. The tasks that had not ended
/// are cancelled.
///
/// # Examples
/// ```
/// use pirn::executor::{InvokeAnyError, ThreadPerTask};
///
/// let executor = ThreadPerTask::new();
/// let error = executor.invoke_any(["one", "two"].map(|word| move || word.parse::<u8>())).unwrap_err();
/// assert!(matches!(error, InvokeAnyError::Failed(_)));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum InvokeAnyError<E> {
    /// There were no tasks.
    Empty,
    /// All tasks failed. This is the error of the first that did.
    Failed(E),
    /// All tasks failed. This is the panic of the first that did.
    Panicked(Panic),
    /// One of the tasks could not be submitted, and none had succeeded until then.
    Submit(SubmitError),
    /// The waiting thread was interrupted. Its flag is still set.
    Interrupted,
    /// None succeeded in time.
    TimedOut,
}

impl<E: fmt::Display> fmt::Display for InvokeAnyError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            InvokeAnyError::Empty => f.write_str("there were no tasks, so none could succeed"),
            InvokeAnyError::Failed(error) => write!(f, "all tasks failed, the first with: {error}"),
            InvokeAnyError::Panicked(panicked) => {
                write!(f, "all tasks failed, the first with: the task {panicked}")
            }
            InvokeAnyError::Submit(error) => error.fmt(f),
            InvokeAnyError::Interrupted => {
                f.write_str("the thread was interrupted while it waited for tasks")
            }
            InvokeAnyError::TimedOut => f.write_str("no task succeeded in time"),
        }
    }
}

impl<E: Error + 'static> Error for InvokeAnyError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            InvokeAnyError::Failed(error) => Some(error),
            InvokeAnyError::Panicked(panicked) => Some(panicked),
            InvokeAnyError::Submit(error) => error.source(),
            InvokeAnyError::Interrupted => Some(&Interrupted),
            InvokeAnyError::Empty | InvokeAnyError::TimedOut => None,
        }
    }
}

/// Why an item of [`map`](super::ThreadPerTask::map) has no value.
///
/// # Examples
/// ```
/// use pirn::executor::{MapError, ThreadPerTask};
///
/// let executor = ThreadPerTask::new();
/// let quotients: Vec<_> = executor.map([1, 0, 2], 3, |n| 10 / n).collect();
/// assert!(matches!(quotients[..], [Ok(10), Err(MapError::Panicked(_)), Ok(5)]));
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum MapError {
    /// The function panicked on it.
    Panicked(Panic),
    /// Its task could not be submitted. It is the last item.
    Submit(SubmitError),
    /// The iterating thread was interrupted while it waited. It is the last item, and the thread's
    /// flag is still set.
    Interrupted,
}

impl fmt::Display for MapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MapError::Panicked(panic) => write!(f, "the task {panic}"),
            MapError::Submit(error) => error.fmt(f),
            MapError::Interrupted => {
                f.write_str("the thread was interrupted while it waited for tasks")
            }
        }
    }
}

impl Error for MapError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            MapError::Panicked(_) => None,
            MapError::Submit(error) => error.source(),
            MapError::Interrupted => Some(&Interrupted),
        }
    }
}
