//! All subtasks must succeed; each is read through its own handle.

use super::kept_failure::KeptFailure;
use crate::scope::{Completed, JoinError, Joiner, JoinerFor};
use core::ops::ControlFlow;

/// The joiner of [`await_all_successful`].
///
/// # Examples
/// It is part of the type of a scope:
/// ```
/// use pirn::scope::{Subtask, TaskScope, joiners::AwaitAllSuccessful};
/// use std::num::ParseIntError;
///
/// type Scope<'scope, 'env> = TaskScope<'scope, 'env, AwaitAllSuccessful<ParseIntError>>;
///
/// fn parse<'scope>(s: &Scope<'scope, '_>, text: &'scope str) -> Subtask<'scope, u8, ParseIntError> {
///     s.fork(|| text.parse())
/// }
///
/// let number = pirn::scope(|s| {
///     let number = parse(&s, "7");
///     let all = s.join()?;
///     Ok(number.get(&all))
/// });
/// assert_eq!(number.unwrap(), 7);
/// ```
#[derive(Debug)]
pub struct AwaitAllSuccessful<E>(KeptFailure<E>);

/// Waits until all subtasks have succeeded. The first failure cancels the scope, and the join fails
/// with it.
///
/// This is the joiner of [`pirn::scope`](crate::scope()). Subtasks may be of different types, and
/// are read through their handles ([`Subtask::get`](crate::scope::Subtask::get)).
///
/// Loom's `Joiner.awaitAllSuccessfulOrThrow`.
///
/// # Examples
/// ```
/// let sum = pirn::scope(|s| {
///     let count = s.fork(|| "3".parse::<usize>());
///     let each = s.fork(|| "14".parse::<usize>());
///     let all = s.join()?;
///     Ok(count.get(&all) * each.get(&all))
/// })?;
/// assert_eq!(sum, 42);
/// # Ok::<(), pirn::scope::JoinError<std::num::ParseIntError>>(())
/// ```
#[doc(alias = "awaitAllSuccessfulOrThrow")]
pub fn await_all_successful<E>() -> AwaitAllSuccessful<E> {
    AwaitAllSuccessful(KeptFailure::new())
}

/// The proof that all subtasks of a scope have succeeded.
///
/// # Examples
/// ```
/// use pirn::scope::{AllOk, Joined, Subtask};
///
/// fn sum<'scope, E>(subtasks: Vec<Subtask<'scope, u8, E>>, all: &Joined<'scope, AllOk>) -> u8 {
///     subtasks.into_iter().map(|subtask| subtask.get(all)).sum()
/// }
///
/// let total = pirn::scope(|s| {
///     let numbers = ["1", "2"].map(|digit| s.fork(|| digit.parse()));
///     let all = s.join()?;
///     Ok::<_, pirn::scope::JoinError<std::num::ParseIntError>>(sum(numbers.into(), &all))
/// });
/// assert_eq!(total.unwrap(), 3);
/// ```
#[derive(Debug)]
pub struct AllOk(());

impl<E: Send> Joiner for AwaitAllSuccessful<E> {
    type Error = E;
    type Output = AllOk;

    fn result(&self) -> Result<AllOk, JoinError<E>> {
        match self.0.take() {
            None => Ok(AllOk(())),
            Some(failure) => Err(failure.into()),
        }
    }
}

impl<T, E: Send> JoinerFor<T> for AwaitAllSuccessful<E> {
    fn on_complete(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        self.0.on_complete(subtask)
    }
}
