//! The policies of Loom's earlier form (JDK 19 to 24): the join itself does not fail, and the
//! program asks for the result afterwards.

use super::kept_failure::KeptFailure;
use crate::scope::{Completed, Failure, JoinError, Joiner, JoinerFor};
use core::ops::ControlFlow;

/// The joiner of [`shutdown_on_failure`].
///
/// # Examples
/// ```
/// use pirn::scope::{self, joiners::ShutdownOnFailure};
/// let joiner: ShutdownOnFailure<std::num::ParseIntError> = scope::shutdown_on_failure();
/// let first = scope::with(joiner, |s| {
///     s.fork(|| "seven".parse::<u8>());
///     Ok(s.join()?.into_output())
/// });
/// assert!(first.unwrap().failure().is_some());
/// ```
#[derive(Debug)]
pub struct ShutdownOnFailure<E>(KeptFailure<E>);

/// Waits until all subtasks have completed. The first failure cancels the scope, and the join
/// returns it if there was one.
///
/// Loom's `StructuredTaskScope.ShutdownOnFailure`.
///
/// # Examples
/// ```
/// use pirn::scope;
/// scope::with(scope::shutdown_on_failure(), |s| {
///     let number = s.fork(|| "7".parse::<u8>());
///     let ended = s.join()?;
///     assert_eq!(number.result(&ended).unwrap(), 7);
///     ended.into_output().throw_if_failed()?;
///     Ok(())
/// })?;
/// # Ok::<(), scope::JoinError<std::num::ParseIntError>>(())
/// ```
pub fn shutdown_on_failure<E>() -> ShutdownOnFailure<E> {
    ShutdownOnFailure(KeptFailure::new())
}

/// The result of a join with [`shutdown_on_failure`].
///
/// # Examples
/// ```
/// use pirn::scope::{self, joiners::FirstFailure};
/// let first: FirstFailure<std::num::ParseIntError> = scope::with(scope::shutdown_on_failure(), |s| {
///     s.fork(|| "7".parse::<u8>());
///     Ok(s.join()?.into_output())
/// })?;
/// assert!(first.failure().is_none());
/// # Ok::<(), scope::JoinError<std::num::ParseIntError>>(())
/// ```
#[derive(Debug)]
pub struct FirstFailure<E>(Option<Failure<E>>);

impl<E> FirstFailure<E> {
    /// Returns the failure that cancelled the scope.
    ///
    /// # Examples
    /// ```
    /// use pirn::scope;
    /// let first = scope::with(scope::shutdown_on_failure(), |s| {
    ///     s.fork(|| Err::<(), _>("out of stock"));
    ///     Ok(s.join()?.into_output())
    /// });
    /// let first = first.unwrap();
    /// assert_eq!(first.failure().and_then(|failure| failure.error()), Some(&"out of stock"));
    /// ```
    pub fn failure(&self) -> Option<&Failure<E>> {
        self.0.as_ref()
    }

    /// Fails if a subtask has failed.
    ///
    /// # Errors
    /// The first failure.
    ///
    /// # Examples
    /// ```
    /// use pirn::scope::{self, JoinError};
    /// let result = scope::with(scope::shutdown_on_failure(), |s| {
    ///     s.fork(|| Err::<(), _>("out of stock"));
    ///     s.join()?.into_output().throw_if_failed() // until here nothing is an error
    /// });
    /// assert!(matches!(result, Err(JoinError::Failed("out of stock"))));
    /// ```
    pub fn throw_if_failed(self) -> Result<(), JoinError<E>> {
        match self.0 {
            None => Ok(()),
            Some(failure) => Err(failure.into()),
        }
    }
}

impl<E: Send> Joiner for ShutdownOnFailure<E> {
    type Error = E;
    type Output = FirstFailure<E>;

    fn result(&self) -> Result<FirstFailure<E>, JoinError<E>> {
        Ok(FirstFailure(self.0.take()))
    }
}

impl<T, E: Send> JoinerFor<T> for ShutdownOnFailure<E> {
    fn on_complete(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        self.0.on_complete(subtask)
    }
}

/// The joiner of [`shutdown_on_success`].
///
/// # Examples
/// ```
/// use pirn::scope::{self, joiners::ShutdownOnSuccess};
/// let joiner: ShutdownOnSuccess<u8, std::num::ParseIntError> = scope::shutdown_on_success();
/// let number = scope::with(joiner, |s| {
///     s.fork(|| "7".parse());
///     s.join()?.into_output().result()
/// });
/// assert_eq!(number.unwrap(), 7);
/// ```
#[derive(Debug)]
pub struct ShutdownOnSuccess<T, E>(super::AnySuccessful<T, E>);

/// Waits until the first subtask has succeeded, which cancels the scope, or all have failed. The
/// join returns the first success, or else the first failure.
///
/// Loom's `StructuredTaskScope.ShutdownOnSuccess`.
///
/// # Examples
/// ```
/// use pirn::scope;
/// let number = scope::with(scope::shutdown_on_success(), |s| {
///     s.fork(|| "seven".parse::<u8>());
///     s.fork(|| "7".parse::<u8>());
///     s.join()?.into_output().result()
/// })?;
/// assert_eq!(number, 7);
/// # Ok::<(), scope::JoinError<std::num::ParseIntError>>(())
/// ```
pub fn shutdown_on_success<T, E>() -> ShutdownOnSuccess<T, E> {
    ShutdownOnSuccess(super::any_successful::any_successful())
}

/// The result of a join with [`shutdown_on_success`].
///
/// # Examples
/// ```
/// use pirn::scope::{self, joiners::FirstSuccess};
/// let first: FirstSuccess<u8, std::num::ParseIntError> = scope::with(scope::shutdown_on_success(), |s| {
///     s.fork(|| "7".parse());
///     Ok(s.join()?.into_output())
/// })?;
/// assert_eq!(first.result()?, 7);
/// # Ok::<(), scope::JoinError<std::num::ParseIntError>>(())
/// ```
#[derive(Debug)]
pub struct FirstSuccess<T, E>(Result<T, JoinError<E>>);

impl<T, E> FirstSuccess<T, E> {
    /// Returns the first success.
    ///
    /// # Errors
    /// The first failure if there was no success; [`JoinError::NoSubtasks`] if there was neither.
    ///
    /// # Examples
    /// ```
    /// use pirn::scope;
    /// let number = scope::with(scope::shutdown_on_success(), |s| {
    ///     s.fork(|| "seven".parse::<u8>());
    ///     Ok(s.join()?.into_output()) // the join does not fail
    /// })?;
    /// assert!(number.result().is_err());
    /// # Ok::<(), scope::JoinError<std::num::ParseIntError>>(())
    /// ```
    pub fn result(self) -> Result<T, JoinError<E>> {
        self.0
    }
}

impl<T: Send, E: Send> Joiner for ShutdownOnSuccess<T, E> {
    type Error = E;
    type Output = FirstSuccess<T, E>;

    fn result(&self) -> Result<FirstSuccess<T, E>, JoinError<E>> {
        Ok(FirstSuccess(self.0.result()))
    }
}

impl<T: Send, E: Send> JoinerFor<T> for ShutdownOnSuccess<T, E> {
    fn on_complete(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        self.0.on_complete(subtask)
    }
}
