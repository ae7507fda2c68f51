//! Map and reduce: many items at once, one result.
//!
//! A scope with a thread per item, as many at a time as may be. The thread that has mapped an item
//! reduces it, too, one after the other: so results wait nowhere but in threads, whose number is
//! limited, and memory is bounded however slow the reduction and however many the items.

use crate::identity::current_limit;
use crate::poison::locked;
use core::convert::Infallible;
use pirn::scope::{self, JoinError};
use pirn::thread;
use std::sync::{Mutex, PoisonError};

/// Calls `map` on each item, each on a virtual thread, at most `parallelism` at a time, and sums
/// the results up: `reduce` makes a total of `initial` and the first, of that and the second, and
/// so on.
///
/// Results are reduced as they come, one at a time, not in the order of the items. Items are taken,
/// on the calling thread, when there is a thread for them: there may be any number of them. Both
/// functions may borrow. Asks in `map` and `reduce` have the deadline of the caller's.
///
/// # Errors
/// In each case no more items are taken, and the threads that map are interrupted and waited for.
///
/// - [`JoinError::Panicked`]: `map` or `reduce` has panicked.
/// - [`JoinError::Interrupted`]: the calling thread was interrupted.
/// - [`JoinError::TimedOut`]: the calling thread handles a message, and its asker's time is up.
/// - [`JoinError::Fork`]: no thread can be had.
///
/// # Panics
/// If `parallelism` is 0, and if the iterator panics.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let sum = actor::map_reduce(8, 0..1000, |n| n * n, 0, |sum, square| sum + square)?;
/// assert_eq!(sum, 332_833_500);
/// # Ok::<(), std::io::Error>(())
/// ```
#[track_caller]
pub fn map_reduce<I, T, R>(
    parallelism: usize,
    items: I,
    map: impl Fn(I::Item) -> T + Sync,
    initial: R,
    mut reduce: impl FnMut(R, T) -> R + Send,
) -> Result<R, JoinError<Infallible>>
where
    I: IntoIterator<Item: Send>,
    R: Send,
{
    let map = |item| Ok(map(item));
    try_map_reduce(parallelism, items, map, initial, |total, mapped| {
        Ok(reduce(total, mapped))
    })
}

/// Does what [`map_reduce`] does with functions that can fail. The first failure is the result.
///
/// # Errors
/// [`JoinError::Failed`], with the first error of `map` or `reduce`, and those of [`map_reduce`].
///
/// # Panics
/// As [`map_reduce`].
///
/// # Examples
/// ```
/// use pirn::scope::JoinError;
/// use pirn_actor as actor;
///
/// let sum = |numbers: &[&str]| {
///     let parse = |number: &str| number.parse::<u32>();
///     actor::try_map_reduce(4, numbers.iter().copied(), parse, 0, |sum, n| Ok(sum + n))
/// };
/// assert_eq!(sum(&["1", "2", "3"]).unwrap(), 6);
/// assert!(matches!(sum(&["1", "two", "3"]), Err(JoinError::Failed(_))));
/// ```
#[track_caller]
pub fn try_map_reduce<I, T, R, E>(
    parallelism: usize,
    items: I,
    map: impl Fn(I::Item) -> Result<T, E> + Sync,
    initial: R,
    reduce: impl FnMut(R, T) -> Result<R, E> + Send,
) -> Result<R, JoinError<E>>
where
    I: IntoIterator<Item: Send>,
    R: Send,
    E: Send,
{
    let total = Total(Mutex::new(Some((initial, reduce))));
    scope::Builder::new().limit(parallelism).open(|s| {
        let mut interrupted = false;
        for item in items {
            // A join of threads that are all over would not hear it, and there are items left.
            interrupted = thread::is_interrupted();
            if interrupted || s.is_cancelled() {
                s.cancel();
                break;
            }
            let (map, total) = (&map, &total);
            s.fork(move || total.add(map(item)?));
        }
        match s.join() {
            // When the time is up, that interrupts the thread, too.
            _ if interrupted && current_limit().is_past() => Err(JoinError::TimedOut),
            _ if interrupted => Err(JoinError::Interrupted),
            joined => joined.map(drop).map_err(JoinError::from),
        }
    })?;
    Ok(total.into_inner())
}

/// The total so far, and what adds to it: with one thread at a time, and gone after a failure.
struct Total<R, F>(Mutex<Option<(R, F)>>);

impl<R, F> Total<R, F> {
    fn add<T, E>(&self, mapped: T) -> Result<(), E>
    where
        F: FnMut(R, T) -> Result<R, E>,
    {
        // The lock is held while the function runs: that there is one call at a time is its
        // purpose.
        let mut shared = locked(&self.0);
        if let Some((total, mut reduce)) = shared.take() {
            *shared = Some((reduce(total, mapped)?, reduce));
        }
        Ok(())
    }

    fn into_inner(self) -> R {
        let shared = self.0.into_inner().unwrap_or_else(PoisonError::into_inner);
        shared.expect("no call has failed").0
    }
}
