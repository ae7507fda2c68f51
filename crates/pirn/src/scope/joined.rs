//! The proofs that a scope has been joined.

use super::JoinError;
use super::sealed::Sealed;
use core::marker::PhantomData;

/// The proof that a scope has been joined.
///
/// # Examples
/// ```
/// use pirn::scope::{Ended, Subtask};
/// fn or_zero<'scope, E>(subtask: Subtask<'scope, u8, E>, joined_or_not: &impl Ended<'scope>) -> u8 {
///     subtask.result(joined_or_not).unwrap_or(0)
/// }
/// ```
pub trait Ended<'scope>: Sealed {}

impl<O> Sealed for Joined<'_, O> {}
impl<'scope, O> Ended<'scope> for Joined<'scope, O> {}
impl<E> Sealed for Unjoined<'_, E> {}
impl<'scope, E> Ended<'scope> for Unjoined<'scope, E> {}

/// A scope that has been joined, with the result of its joiner.
///
/// # Examples
/// ```
/// use pirn::scope::{AllOk, Joined, Subtask};
/// fn sum<'scope, E>(subtasks: Vec<Subtask<'scope, u8, E>>, all: &Joined<'scope, AllOk>) -> u8 {
///     subtasks.into_iter().map(|subtask| subtask.get(all)).sum()
/// }
/// ```
#[derive(Debug)]
pub struct Joined<'scope, O> {
    output: O,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, O> Joined<'scope, O> {
    pub(super) fn new(output: O) -> Joined<'scope, O> {
        Joined {
            output,
            scope: PhantomData,
        }
    }

    /// Returns a reference to the joiner's result.
    ///
    /// # Examples
    /// ```
    /// let count = pirn::scope::with(pirn::scope::all_successful(), |s| {
    ///     s.fork(|| "7".parse::<u8>());
    ///     Ok(s.join()?.output().len())
    /// });
    /// assert_eq!(count.unwrap(), 1);
    /// ```
    pub fn output(&self) -> &O {
        &self.output
    }

    /// Returns the joiner's result.
    ///
    /// # Examples
    /// ```
    /// let numbers = pirn::scope::with(pirn::scope::all_successful(), |s| {
    ///     s.fork(|| "7".parse::<u8>());
    ///     Ok(s.join()?.into_output())
    /// });
    /// assert_eq!(numbers.unwrap(), [7]);
    /// ```
    pub fn into_output(self) -> O {
        self.output
    }
}

/// A scope whose join failed. The [results](super::Subtask::result) of its subtasks can still be
/// read.
///
/// `?` converts it to the [`JoinError`].
///
/// # Examples
/// ```
/// let result = pirn::scope(|s| {
///     let order = s.fork(|| Err::<(), _>("out of stock"));
///     Ok(order.result(&s.join().unwrap_err()))
/// });
/// let taken = pirn::scope::SubtaskError::<&str>::Taken; // by the joiner: it is the error of the join
/// assert_eq!(result.unwrap().unwrap_err().to_string(), taken.to_string());
/// ```
#[derive(Debug)]
pub struct Unjoined<'scope, E> {
    error: JoinError<E>,
    scope: PhantomData<&'scope mut &'scope ()>,
}

impl<'scope, E> Unjoined<'scope, E> {
    pub(super) fn new(error: JoinError<E>) -> Unjoined<'scope, E> {
        Unjoined {
            error,
            scope: PhantomData,
        }
    }

    /// Returns a reference to the error of the join.
    ///
    /// # Examples
    /// ```
    /// let text = pirn::scope(|s| {
    ///     s.fork(|| Err::<(), _>("out of stock"));
    ///     Ok(s.join().unwrap_err().error().to_string())
    /// });
    /// assert_eq!(text.unwrap(), "a subtask failed: out of stock");
    /// ```
    pub fn error(&self) -> &JoinError<E> {
        &self.error
    }

    /// Returns the error of the join.
    ///
    /// # Examples
    /// ```
    /// let error = pirn::scope(|s| {
    ///     s.fork(|| Err::<(), _>("out of stock"));
    ///     Ok(s.join().unwrap_err().into_error())
    /// });
    /// assert!(matches!(error.unwrap(), pirn::scope::JoinError::Failed("out of stock")));
    /// ```
    pub fn into_error(self) -> JoinError<E> {
        self.error
    }
}

impl<E> From<Unjoined<'_, E>> for JoinError<E> {
    fn from(unjoined: Unjoined<'_, E>) -> JoinError<E> {
        unjoined.error
    }
}
