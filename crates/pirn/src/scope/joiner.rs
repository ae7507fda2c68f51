//! What a scope makes of its subtasks.

use super::{Failure, JoinError};

/// What is to become of the scope.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Flow {
    /// It goes on.
    Continue,
    /// It is cancelled: no more is started, and what runs is interrupted.
    Cancel,
}

/// A policy: when a scope is over, and what [`join`](super::TaskScope::join) gives then.
///
/// The one in this trait is what does not depend on the values of subtasks; [`Joins`] is the rest. Those that come with the
/// library are [in this module](super#joiners).
///
/// A joiner is shared by the subtasks of its scope, and told of each on that subtask's own thread, many at a time.
///
/// # Examples
/// The second that succeeds:
/// ```
/// use pirn::scope::{self, Completed, Flow, JoinError, Joiner, Joins};
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
/// impl Joins<u32> for Second {
///     fn on_complete(&self, subtask: &mut Completed<'_, u32, String>) -> Flow {
///         let mut values = self.0.lock().unwrap();
///         if let Ok(value) = subtask.result() {
///             values.push(*value);
///         }
///         if values.len() < 2 { Flow::Continue } else { Flow::Cancel }
///     }
/// }
///
/// let second = scope::with(Second(Mutex::new(Vec::new())), |s| {
///     s.fork(|| Ok(1));
///     s.fork(|| Err("none".to_string()));
///     s.fork(|| Ok(1));
///     Ok(s.join()?.into_output())
/// });
/// assert_eq!(second.unwrap(), Some(1));
/// ```
pub trait Joiner: Sync {
    /// What subtasks fail with.
    type Error: Send;
    /// What the join gives.
    type Output;

    /// Called by the owner's `join`, when all subtasks have completed or the joiner has cancelled the scope.
    ///
    /// Subtasks that were cancelled may still be running, but the joiner will not be told of them (but for calls
    /// that are under way).
    ///
    /// # Errors
    /// What `join` is to fail with.
    fn result(&self) -> Result<Self::Output, JoinError<Self::Error>>;

    /// Called instead of [`result`](Self::result) when the time was up first.
    ///
    /// # Errors
    /// What `join` is to fail with: [`JoinError::TimedOut`] if not said otherwise.
    fn timed_out(&self) -> Result<Self::Output, JoinError<Self::Error>> {
        Err(JoinError::TimedOut)
    }
}

/// A [`Joiner`] for subtasks that give a `T`.
pub trait Joins<T>: Joiner {
    /// Called by the owner before the subtask of this number, counted from 0, is forked; also if it will not be started because
    /// the scope has been cancelled.
    fn on_fork(&self, index: usize) -> Flow {
        let _ = index;
        Flow::Continue
    }

    /// Called when a subtask has completed, on its own thread, unless the scope has been cancelled before.
    ///
    /// If it panics, the scope is cancelled, and its join fails with the panic.
    fn on_complete(&self, subtask: &mut Completed<'_, T, Self::Error>) -> Flow;
}

/// A subtask that has completed, as its joiner sees it.
#[derive(Debug)]
pub struct Completed<'a, T, E> {
    index: usize,
    result: &'a mut Option<Result<T, Failure<E>>>,
}

impl<'a, T, E> Completed<'a, T, E> {
    /// `result` is there.
    pub(super) fn new(
        index: usize,
        result: &'a mut Option<Result<T, Failure<E>>>,
    ) -> Completed<'a, T, E> {
        Completed { index, result }
    }

    /// Its number, in the order of forks, from 0.
    pub fn index(&self) -> usize {
        self.index
    }

    /// Whether it has succeeded.
    pub fn is_success(&self) -> bool {
        matches!(self.result, Some(Ok(_)))
    }

    /// Its result.
    ///
    /// # Errors
    /// Why it failed.
    ///
    /// # Panics
    /// If the joiner has [taken](Self::take) the result.
    pub fn result(&self) -> Result<&T, &Failure<E>> {
        match &self.result {
            Some(result) => result.as_ref(),
            None => panic!("the result of a subtask was asked for after it was taken"),
        }
    }

    /// Takes its result, which the [`Subtask`](super::Subtask) then has no more.
    ///
    /// # Errors
    /// Why it failed.
    ///
    /// # Panics
    /// If it has been taken.
    pub fn take(&mut self) -> Result<T, Failure<E>> {
        match self.result.take() {
            Some(result) => result,
            None => panic!("the result of a subtask was taken twice"),
        }
    }
}
