//! The joiners that come with the library.
//!
//! A program names these types only where it passes a joiner, or a scope with one, to another
//! function; it makes them by the functions.

use super::{Completed, Failure, JoinError, Joiner, JoinerFor, SubtaskError};
use core::marker::PhantomData;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn_rt::poison::locked;
use std::sync::{Condvar, Mutex, PoisonError};

/// The joiner of [`await_all_successful`].
#[derive(Debug)]
pub struct AwaitAllSuccessful<E> {
    /// Whether there is a failure. Saves the lock in a scope in which no subtask fails.
    failed: AtomicBool,
    first: Mutex<Option<Failure<E>>>,
}

/// Waits until all subtasks have succeeded. The first failure cancels the scope, and the join fails
/// with it.
///
/// This is the joiner of [`scope::open`](crate::scope::open). Subtasks may be of different types,
/// and are read through their handles ([`Subtask::get`](crate::scope::Subtask::get)).
///
/// Loom's `Joiner.awaitAllSuccessfulOrThrow`.
///
/// # Examples
/// ```
/// let sum = pirn::scope::open(|s| {
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
    AwaitAllSuccessful {
        failed: AtomicBool::new(false),
        first: Mutex::new(None),
    }
}

/// The proof that all subtasks of a scope have succeeded.
#[derive(Debug)]
pub struct AllOk(());

impl<E: Send> Joiner for AwaitAllSuccessful<E> {
    type Error = E;
    type Output = AllOk;

    fn result(&self) -> Result<AllOk, JoinError<E>> {
        // Relaxed: the join has seen the end of all subtasks, or that this failure cancelled the
        // scope.
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(AllOk(()));
        }
        match locked(&self.first).take() {
            None => Ok(AllOk(())),
            Some(failure) => Err(failure.into()),
        }
    }
}

impl<T, E: Send> JoinerFor<T> for AwaitAllSuccessful<E> {
    fn on_complete(&self, subtask: &mut Completed<'_, T, E>) -> ControlFlow<()> {
        if subtask.is_success() {
            return ControlFlow::Continue(());
        }
        let mut first = locked(&self.first);
        if first.is_none()
            && let Err(failure) = subtask.take()
        {
            *first = Some(failure);
        }
        self.failed.store(true, Ordering::Relaxed); // Relaxed: published by the cancellation.
        ControlFlow::Break(())
    }
}

/// The joiner of [`all_successful`].
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
/// let lengths = scope::open_with(scope::all_successful(), |s| {
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

/// The joiner of [`any_successful`].
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
/// let fastest = scope::open_with(scope::any_successful(), |s| {
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

/// The joiner of [`await_all`].
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
/// scope::open_with(scope::await_all(), |s| {
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

/// The result of each subtask, in the order of forks.
type Results<T, E> = Vec<Result<T, SubtaskError<E>>>;

/// The joiner of [`all_until`].
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
/// let results = scope::open_with(joiner, |s| {
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
