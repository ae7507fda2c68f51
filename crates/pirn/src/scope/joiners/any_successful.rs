//! One success is enough.

use crate::scope::{Completed, Failure, JoinError, Joiner, JoinerFor};
use core::ops::ControlFlow;
use pirn_rt::poison::locked;
use std::sync::Mutex;

/// The joiner of [`any_successful`].
///
/// # Examples
/// ```
/// use pirn::scope::{self, joiners::AnySuccessful};
/// let joiner: AnySuccessful<u8, std::num::ParseIntError> = scope::any_successful();
/// let number = scope::with(joiner, |s| {
///     s.fork(|| "seven".parse());
///     s.fork(|| "7".parse());
///     Ok(s.join()?.into_output())
/// });
/// assert_eq!(number.unwrap(), 7);
/// ```
#[derive(Debug)]
pub struct AnySuccessful<T, E>(Mutex<Option<Result<T, Failure<E>>>>);

/// Waits for the first subtask that succeeds. The join returns its value, and the other subtasks
/// are cancelled. If all fail, the join fails with the first failure; if none was forked, with
/// [`NoSubtasks`](JoinError::NoSubtasks).
///
/// Loom's `Joiner.anySuccessfulResultOrThrow`.
///
/// # Examples
/// ```
/// use pirn::{scope, thread};
/// use std::time::Duration;
/// let fastest = scope::with(scope::any_successful(), |s| {
///     s.fork(|| {
///         thread::sleep_interruptible(Duration::from_secs(3600))?; // cut short
///         Ok("slow")
///     });
///     s.fork(|| Ok("fast"));
///     Ok(s.join()?.into_output())
/// })?;
/// assert_eq!(fastest, "fast");
/// # Ok::<(), scope::JoinError<thread::Interrupted>>(())
/// ```
#[doc(alias = "anySuccessfulResultOrThrow")]
pub fn any_successful<T, E>() -> AnySuccessful<T, E> {
    AnySuccessful(Mutex::new(None))
}

impl<T: Send, E: Send> Joiner for AnySuccessful<T, E> {
    type Error = E;
    type Output = T;

    fn result(&self) -> Result<T, JoinError<E>> {
        match locked(&self.0).take() {
            Some(Ok(value)) => Ok(value),
            Some(Err(failure)) => Err(failure.into()),
            None => Err(JoinError::NoSubtasks),
        }
    }
}

impl<T: Send, E: Send> JoinerFor<T> for AnySuccessful<T, E> {
    fn on_complete(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        let mut best = locked(&self.0);
        let better = match &*best {
            None => true,
            Some(Err(_)) => subtask.is_success(),
            Some(Ok(_)) => false,
        };
        let before = better.then(|| best.replace(subtask.take()));
        let flow = match *best {
            Some(Ok(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        };
        drop(best);
        // This runs user code, so not under the lock.
        drop(before);
        flow
    }
}
