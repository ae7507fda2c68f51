//! How a scope combines the results of its subtasks.

use super::{Failure, JoinError};
use core::ops::ControlFlow;

/// A policy that decides when a scope is over and what [`join`](super::TaskScope::join) returns.
///
/// This trait has the part that does not depend on the values of subtasks; [`JoinerFor`] has the
/// rest. The joiners that come with the library are [in this module](super#joiners).
///
/// The subtasks of a scope share its joiner. It is told of each subtask on that subtask's own
/// thread, and so by several threads at once.
///
/// # Examples
/// A joiner that returns the second success:
/// ```
/// use pirn::scope::{self, Completed, JoinError, Joiner, JoinerFor};
/// use std::ops::ControlFlow;
/// use std::sync::Mutex;
///
/// struct Second(Mutex<Vec<u32>>);
///
/// impl Joiner for Second {
///     type Error = String;
///     type Output = Option<u32>;
///     fn result(&self) -> Result<Option<u32>, JoinError<String>> {
///         Ok(self.0.lock().unwrap().get(1).copied())
///     }
/// }
///
/// impl JoinerFor<u32> for Second {
///     fn on_complete(&self, subtask: &mut Completed<'_, u32, String>) -> ControlFlow<()> {
///         let mut values = self.0.lock().unwrap();
///         if let Ok(value) = subtask.result() {
///             values.push(*value);
///         }
///         if values.len() < 2 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
///     }
/// }
///
/// let second = scope::open_with(Second(Mutex::new(Vec::new())), |s| {
///     s.fork(|| Ok(1));
///     s.fork(|| Err("none".to_string()));
///     s.fork(|| Ok(1));
///     Ok(s.join()?.into_output())
/// });
/// assert_eq!(second.unwrap(), Some(1));
/// ```
pub trait Joiner: Sync {
    /// The error of subtasks.
    type Error: Send;
    /// The result of the join.
    type Output;

    /// Called by the owner's `join`, when all subtasks have completed or the joiner has cancelled
    /// the scope.
    ///
    /// Subtasks that were cancelled may still be running. The joiner is not told of them, except by
    /// calls that have already begun.
    ///
    /// # Errors
    /// The error with which `join` fails.
    fn result(&self) -> Result<Self::Output, JoinError<Self::Error>>;

    /// Called instead of [`result`](Self::result) when the scope's time was up first.
    ///
    /// # Errors
    /// The error with which `join` fails: [`JoinError::TimedOut`] by default.
    fn timed_out(&self) -> Result<Self::Output, JoinError<Self::Error>> {
        Err(JoinError::TimedOut)
    }
}

/// A [`Joiner`] for subtasks that return a `T`.
///
/// # Examples
/// A joiner for subtasks of any type:
/// ```
/// use pirn::scope::{self, Completed, JoinError, Joiner, JoinerFor};
/// use std::ops::ControlFlow;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// /// Counts the subtasks that succeed.
/// struct Count(AtomicU32);
/// # impl Joiner for Count {
/// #     type Error = std::num::ParseIntError;
/// #     type Output = u32;
/// #     fn result(&self) -> Result<u32, JoinError<Self::Error>> {
/// #         Ok(self.0.load(Ordering::Relaxed))
/// #     }
/// # }
/// impl<T> JoinerFor<T> for Count {
///     fn on_complete(&self, subtask: &mut Completed<'_, T, Self::Error>) -> ControlFlow<()> {
///         self.0.fetch_add(subtask.is_success().into(), Ordering::Relaxed);
///         ControlFlow::Continue(())
///     }
/// }
///
/// let count = scope::open_with(Count(AtomicU32::new(0)), |s| {
///     s.fork(|| "7".parse::<u8>());
///     s.fork(|| "seven".parse::<i64>());
///     Ok(s.join()?.into_output())
/// });
/// assert_eq!(count.unwrap(), 1);
/// ```
pub trait JoinerFor<T>: Joiner {
    /// Called by the owner before the subtask with this number, counted from 0, is forked; also if
    /// the subtask will not be started because the scope has been cancelled.
    ///
    /// [`Break`](ControlFlow::Break) cancels the scope: no more subtasks are started, and running
    /// ones are interrupted.
    fn on_fork(&self, index: usize) -> ControlFlow<()> {
        let _ = index;
        ControlFlow::Continue(())
    }

    /// Called when a subtask has completed, on its own thread, unless the scope has been cancelled
    /// before. [`Break`](ControlFlow::Break) cancels the scope.
    ///
    /// If it panics, the scope is cancelled, and its join fails with the panic.
    fn on_complete(&self, subtask: &mut Completed<'_, T, Self::Error>) -> ControlFlow<()>;
}

/// A subtask that has completed, as its joiner sees it.
///
/// # Examples
/// ```
/// use pirn::scope::{self, Completed};
/// let found = |subtask: &Completed<'_, u32, &str>| subtask.result().is_ok_and(|number| *number > 9);
/// let results = scope::open_with(scope::all_until(found), |s| {
///     s.fork(|| Ok(3));
///     s.fork(|| Ok(12));
///     Ok(s.join()?.into_output())
/// });
/// assert!(matches!(results.unwrap()[1], Ok(12)));
/// ```
#[derive(Debug)]
pub struct Completed<'a, T, E> {
    index: usize,
    result: &'a mut Option<Result<T, Failure<E>>>,
}

impl<'a, T, E> Completed<'a, T, E> {
    /// Returns the view of a subtask whose `result` is set.
    pub(super) fn new(
        index: usize,
        result: &'a mut Option<Result<T, Failure<E>>>,
    ) -> Completed<'a, T, E> {
        Completed { index, result }
    }

    /// Returns the number of the subtask, in the order of forks, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Returns whether the subtask has succeeded.
    pub fn is_success(&self) -> bool {
        matches!(self.result, Some(Ok(_)))
    }

    /// Returns the result of the subtask.
    ///
    /// # Errors
    /// The reason for which the subtask failed.
    ///
    /// # Panics
    /// If the joiner has [taken](Self::take) the result.
    pub fn result(&self) -> Result<&T, &Failure<E>> {
        match &self.result {
            Some(result) => result.as_ref(),
            None => panic!("the result of a subtask was asked for after it was taken"),
        }
    }

    /// Takes the result of the subtask, which its [`Subtask`](super::Subtask) then no longer has.
    ///
    /// # Errors
    /// The reason for which the subtask failed.
    ///
    /// # Panics
    /// If the result has been taken.
    pub fn take(&mut self) -> Result<T, Failure<E>> {
        match self.result.take() {
            Some(result) => result,
            None => panic!("the result of a subtask was taken twice"),
        }
    }
}
