//! The scope goes on until a predicate says so.

use crate::scope::{Completed, JoinError, Joiner, JoinerFor, SubtaskError};
use core::ops::ControlFlow;
use pirn_rt::poison::locked;
use std::sync::{Condvar, Mutex, PoisonError};

/// The result of each subtask, in the order of forks.
type Results<T, E> = Vec<Result<T, SubtaskError<E>>>;

/// The joiner of [`all_until`].
///
/// # Examples
/// A custom joiner made of it:
/// ```
/// use pirn::scope::{self, Completed, joiners::AllUntil};
/// fn until_failure<T, E>() -> AllUntil<T, E, impl Fn(&Completed<'_, T, E>) -> bool + Sync> {
///     scope::all_until(|subtask: &Completed<'_, T, E>| !subtask.is_success())
/// }
/// let results = scope::with(until_failure(), |s| {
///     s.fork(|| "seven".parse::<u8>());
///     Ok(s.join()?.into_output())
/// });
/// assert!(results.unwrap()[0].is_err());
/// ```
#[derive(Debug)]
pub struct AllUntil<T, E, P> {
    state: Mutex<Judged<T, E>>,
    /// Notified when no subtask is being judged any more.
    settled: Condvar,
    enough: P,
}

#[derive(Debug)]
struct Judged<T, E> {
    results: Results<T, E>,
    /// The number of completed subtasks that the predicate is still looking at: their results are
    /// not stored yet.
    judged: usize,
}

/// Counts a subtask as judged for as long as this exists.
struct Judging<'a, T, E, P>(&'a AllUntil<T, E, P>);

impl<T, E, P> Drop for Judging<'_, T, E, P> {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        state.judged -= 1;
        if state.judged == 0 {
            self.0.settled.notify_all();
        }
    }
}

/// Waits until all subtasks have completed, or `enough` returns `true` for one that has; then the
/// others are cancelled. The join returns the result of each subtask, in the order of forks, with
/// [`Unavailable`](SubtaskError::Unavailable) for those that were cancelled. It does so as well
/// when the time is up.
///
/// `enough` is called on the threads of the subtasks, by several at a time.
///
/// Loom's `Joiner.allUntil`.
///
/// # Examples
/// Two failures are tolerated:
/// ```
/// use pirn::scope;
/// use std::sync::atomic::{AtomicU32, Ordering};
///
/// let failures = AtomicU32::new(0);
/// let joiner = scope::all_until(|subtask| {
///     !subtask.is_success() && failures.fetch_add(1, Ordering::Relaxed) == 2
/// });
/// let results = scope::with(joiner, |s| {
///     for digit in ["1", "one", "2", "two"] {
///         s.fork(|| digit.parse::<u8>());
///     }
///     Ok(s.join()?.into_output())
/// })?;
/// assert_eq!(results.len(), 4);
/// assert_eq!(results.iter().flatten().sum::<u8>(), 3);
/// # Ok::<(), scope::JoinError<std::num::ParseIntError>>(())
/// ```
#[doc(alias = "allUntil")]
pub fn all_until<T, E, P>(enough: P) -> AllUntil<T, E, P>
where
    P: Fn(&Completed<'_, T, E>) -> bool + Sync,
{
    AllUntil {
        state: Mutex::new(Judged {
            results: Vec::new(),
            judged: 0,
        }),
        settled: Condvar::new(),
        enough,
    }
}

impl<T: Send, E: Send, P: Sync> Joiner for AllUntil<T, E, P> {
    type Error = E;
    type Output = Results<T, E>;

    fn result(&self) -> Result<Results<T, E>, JoinError<E>> {
        // A subtask that is being judged may have caused the cancellation: its result must be
        // included.
        let settled = self
            .settled
            .wait_while(locked(&self.state), |state| state.judged > 0);
        let mut state = settled.unwrap_or_else(PoisonError::into_inner);
        Ok(core::mem::take(&mut state.results))
    }

    fn timed_out(&self) -> Result<Results<T, E>, JoinError<E>> {
        self.result()
    }
}

impl<T: Send, E: Send, P> JoinerFor<T> for AllUntil<T, E, P>
where
    P: Fn(&Completed<'_, T, E>) -> bool + Sync,
{
    fn on_fork(&self, _: usize) -> ControlFlow<()> {
        let nothing = Err(SubtaskError::Unavailable);
        locked(&self.state).results.push(nothing);
        ControlFlow::Continue(())
    }

    fn on_complete(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        locked(&self.state).judged += 1;
        let judging = Judging(self);
        let flow = match (self.enough)(subtask) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        let result = subtask.take().map_err(SubtaskError::from);
        // The results are gone if the owner has left with them meanwhile.
        if let Some(place) = locked(&self.state).results.get_mut(subtask.index()) {
            *place = result;
        }
        drop(judging);
        flow
    }
}
