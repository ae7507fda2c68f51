//! How subtasks and scopes fail.

use crate::thread::{Interrupted, Panic};
use core::convert::Infallible;
use core::fmt;
use std::error::Error;
use std::io;

/// Why a subtask failed.
///
/// # Examples
/// ```
/// use pirn::scope::{self, Failure};
/// scope::open_with(scope::await_all(), |s| {
///     let subtask = s.fork(|| Err::<(), _>("out of stock"));
///     let ended = s.join()?;
///     assert!(matches!(subtask.peek(&ended), Some(Err(Failure::Failed("out of stock")))));
///     Ok(())
/// })?;
/// # Ok::<(), scope::JoinError<&str>>(())
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum Failure<E> {
    /// The subtask returned this error.
    Failed(E),
    /// The subtask panicked.
    Panicked(Panic),
}

impl<E: fmt::Display> fmt::Display for Failure<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Failed(error) => write!(f, "a subtask failed: {error}"),
            Failure::Panicked(panic) => write!(f, "a subtask {panic}"),
        }
    }
}

impl<E: Error + 'static> Error for Failure<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            Failure::Failed(error) => Some(error),
            Failure::Panicked(panic) => Some(panic),
        }
    }
}

/// Why a scope has no result.
///
/// `?` converts an error `E` of the scope's own code to [`Failed`](Self::Failed).
///
/// # Examples
/// ```
/// use pirn::scope::JoinError;
/// let result = pirn::scope::open(|s| {
///     s.fork(|| Err::<(), _>("out of stock"));
///     Ok(s.join()?.into_output())
/// });
/// match result {
///     Err(JoinError::Failed(error)) => assert_eq!(error, "out of stock"),
///     other => panic!("{other:?}"),
/// }
/// ```
#[derive(Debug)]
#[non_exhaustive]
pub enum JoinError<E> {
    /// A subtask, or the scope's own code, returned this error.
    Failed(E),
    /// A subtask panicked, or the joiner did.
    Panicked(Panic),
    /// The scope's time was up.
    TimedOut,
    /// The scope's owner was interrupted.
    Interrupted,
    /// The scope was cancelled by its owner.
    Cancelled,
    /// Nothing was forked, but the joiner was to return one result.
    NoSubtasks,
    /// A thread for a subtask could not be started; the text says why.
    Fork(io::Error),
}

impl<E> JoinError<E> {
    /// Returns the error in one type, if the other reasons convert to that type, as they do to
    /// `anyhow::Error`, `Box<dyn Error>` and [`io::Error`].
    ///
    /// # Examples
    /// ```
    /// use pirn::scope::JoinError;
    /// use std::io;
    ///
    /// fn both() -> io::Result<u64> {
    ///     pirn::scope::open(|s| {
    ///         let file = s.fork(|| std::fs::metadata("/").map(|m| m.len()));
    ///         let nothing = s.fork(|| std::fs::metadata("/nothing/here").map(|m| m.len()));
    ///         let all = s.join()?;
    ///         Ok(file.get(&all) + nothing.get(&all))
    ///     })
    ///     .map_err(JoinError::flatten)
    /// }
    /// assert_eq!(both().unwrap_err().kind(), io::ErrorKind::NotFound);
    /// ```
    pub fn flatten(self) -> E
    where
        E: From<JoinError<Infallible>>,
    {
        E::from(match self {
            JoinError::Failed(error) => return error,
            JoinError::Panicked(panic) => JoinError::Panicked(panic),
            JoinError::TimedOut => JoinError::TimedOut,
            JoinError::Interrupted => JoinError::Interrupted,
            JoinError::Cancelled => JoinError::Cancelled,
            JoinError::NoSubtasks => JoinError::NoSubtasks,
            JoinError::Fork(error) => JoinError::Fork(error),
        })
    }
}

impl<E> From<E> for JoinError<E> {
    fn from(error: E) -> JoinError<E> {
        JoinError::Failed(error)
    }
}

impl<E> From<Failure<E>> for JoinError<E> {
    fn from(failure: Failure<E>) -> JoinError<E> {
        match failure {
            Failure::Failed(error) => JoinError::Failed(error),
            Failure::Panicked(panic) => JoinError::Panicked(panic),
        }
    }
}

impl From<JoinError<Infallible>> for io::Error {
    fn from(error: JoinError<Infallible>) -> io::Error {
        match error {
            JoinError::TimedOut => io::Error::new(io::ErrorKind::TimedOut, error),
            JoinError::Interrupted => Interrupted.into(),
            JoinError::Fork(error) => error,
            other => io::Error::other(other),
        }
    }
}

impl<E: fmt::Display> fmt::Display for JoinError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JoinError::Failed(error) => write!(f, "a subtask failed: {error}"),
            JoinError::Panicked(panic) => write!(f, "a subtask {panic}"),
            JoinError::TimedOut => f.write_str("the scope's time was up before its subtasks ended"),
            JoinError::Interrupted => f.write_str("the scope's owner was interrupted"),
            JoinError::Cancelled => f.write_str("the scope was cancelled by its owner"),
            JoinError::NoSubtasks => {
                f.write_str("nothing was forked in a scope that needs one result")
            }
            JoinError::Fork(error) => write!(f, "a subtask could not be started: {error}"),
        }
    }
}

impl<E: Error + 'static> Error for JoinError<E> {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            JoinError::Failed(error) => Some(error),
            JoinError::Panicked(panic) => Some(panic),
            JoinError::Interrupted => Some(&Interrupted),
            JoinError::Fork(error) => Some(error),
            _ => None,
        }
    }
}
