//! All subtasks must succeed; the join returns all their values.

use crate::scope::{Completed, Failure, JoinError, Joiner, JoinerFor};
use core::ops::ControlFlow;
use pirn_rt::poison::locked;
use std::sync::Mutex;

/// The joiner of [`all_successful`].
///
/// # Examples
/// ```
/// use pirn::scope::{self, joiners::AllSuccessful};
/// let joiner: AllSuccessful<u8, std::num::ParseIntError> = scope::all_successful();
/// let numbers = scope::with(joiner, |s| {
///     s.fork(|| "7".parse());
///     Ok(s.join()?.into_output())
/// });
/// assert_eq!(numbers.unwrap(), [7]);
/// ```
#[derive(Debug)]
pub struct AllSuccessful<T, E>(Mutex<Collected<T, E>>);

#[derive(Debug)]
struct Collected<T, E> {
    /// In the order of forks; `None` until the subtask has succeeded.
    values: Vec<Option<T>>,
    failure: Option<Failure<E>>,
}

/// Waits until all subtasks have succeeded, and returns all values in the order of forks. The first
/// failure cancels the scope, and the join fails with it.
///
/// Loom's `Joiner.allSuccessfulOrThrow`.
///
/// # Examples
/// ```
/// use pirn::scope;
/// let lengths = scope::with(scope::all_successful(), |s| {
///     for word in ["warp", "weft", "shuttle"] {
///         s.fork(move || Ok::<_, std::fmt::Error>(word.len()));
///     }
///     Ok(s.join()?.into_output())
/// })?;
/// assert_eq!(lengths, [4, 4, 7]);
/// # Ok::<(), scope::JoinError<std::fmt::Error>>(())
/// ```
#[doc(alias = "allSuccessfulOrThrow")]
pub fn all_successful<T, E>() -> AllSuccessful<T, E> {
    AllSuccessful(Mutex::new(Collected {
        values: Vec::new(),
        failure: None,
    }))
}

impl<T: Send, E: Send> Joiner for AllSuccessful<T, E> {
    type Error = E;
    type Output = Vec<T>;

    fn result(&self) -> Result<Vec<T>, JoinError<E>> {
        let mut state = locked(&self.0);
        match state.failure.take() {
            Some(failure) => Err(failure.into()),
            None => Ok(core::mem::take(&mut state.values)
                .into_iter()
                .flatten()
                .collect()),
        }
    }
}

impl<T: Send, E: Send> JoinerFor<T> for AllSuccessful<T, E> {
    fn on_fork(&self, _: usize) -> ControlFlow<()> {
        locked(&self.0).values.push(None);
        ControlFlow::Continue(())
    }

    fn on_complete(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        let mut state = locked(&self.0);
        if state.failure.is_some() {
            return ControlFlow::Break(());
        }
        match subtask.take() {
            Ok(value) => {
                state.values[subtask.index()] = Some(value);
                ControlFlow::Continue(())
            }
            Err(failure) => {
                state.failure = Some(failure);
                ControlFlow::Break(())
            }
        }
    }
}
