//! No result cancels the scope.

use crate::scope::{Completed, JoinError, Joiner, JoinerFor};
use core::marker::PhantomData;
use core::ops::ControlFlow;

/// The joiner of [`await_all`].
///
/// # Examples
/// ```
/// use pirn::scope::{self, joiners::AwaitAll};
/// let joiner: AwaitAll<std::num::ParseIntError> = scope::await_all();
/// let number = scope::with(joiner, |s| {
///     let number = s.fork(|| "seven".parse::<u8>());
///     Ok(number.result(&s.join()?))
/// });
/// assert!(number.unwrap().is_err());
/// ```
#[derive(Debug)]
pub struct AwaitAll<E>(PhantomData<fn() -> E>);

/// Waits until all subtasks have completed, however they end. Each is read through its handle
/// ([`Subtask::result`](crate::scope::Subtask::result)).
///
/// Loom's `Joiner.awaitAll`.
///
/// # Examples
/// ```
/// use pirn::scope::{self, State};
/// scope::with(scope::await_all(), |s| {
///     let good = s.fork(|| "7".parse::<u8>());
///     let bad = s.fork(|| "seven".parse::<u8>());
///     let ended = s.join()?;
///     assert_eq!(good.result(&ended).unwrap(), 7);
///     assert_eq!(bad.state(), State::Failed);
///     Ok(())
/// })?;
/// # Ok::<(), scope::JoinError<std::num::ParseIntError>>(())
/// ```
#[doc(alias = "awaitAll")]
pub fn await_all<E>() -> AwaitAll<E> {
    AwaitAll(PhantomData)
}

impl<E: Send> Joiner for AwaitAll<E> {
    type Error = E;
    type Output = ();

    fn result(&self) -> Result<(), JoinError<E>> {
        Ok(())
    }
}

impl<T, E: Send> JoinerFor<T> for AwaitAll<E> {
    fn on_complete(&self, _: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}
