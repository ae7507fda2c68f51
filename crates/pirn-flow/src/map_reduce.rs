//! Map and reduce: many items at once, one result.
//!
//! A scope has a thread per item, a limited number at a time. The thread that has mapped an item
//! reduces it, too, one after the other: so results wait nowhere but in threads, and memory is
//! bounded however slow the reduction and however many the items.

use crate::wait::{is_past, locked};
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
/// functions may borrow. The caller's deadline holds for both.
///
/// # Errors
/// In each case no more items are taken, and the threads that map are interrupted and waited for.
///
/// - [`JoinError::Panicked`]: `map` or `reduce` has panicked.
/// - [`JoinError::Interrupted`]: the calling thread was interrupted.
/// - [`JoinError::TimedOut`]: the [deadline](pirn::scope::deadline()) of the calling thread passed.
/// - [`JoinError::Fork`]: no thread can be had.
///
/// # Panics
/// If `parallelism` is 0, and if the iterator panics.
///
/// # Examples
/// ```
/// use pirn_flow::map_reduce::map_reduce;
///
/// let sum = map_reduce(8, 0..1000, |n| n * n, 0, |sum, square| sum + square)?;
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
    let reduce = |total, mapped| Ok(reduce(total, mapped));
    try_map_reduce(parallelism, items, map, initial, reduce)
}

/// Does what [`map_reduce`] does with functions that can fail. The first failure is the result.
///
/// # Errors
/// [`JoinError::Failed`], with the first error of `map` or `reduce`, and the errors of
/// [`map_reduce`].
///
/// # Panics
/// As [`map_reduce`].
///
/// # Examples
/// ```
/// use pirn::scope::JoinError;
/// use pirn_flow::map_reduce::try_map_reduce;
///
/// let sum = |numbers: &[&str]| {
///     let parse = |number: &str| number.parse::<u32>();
///     try_map_reduce(4, numbers.iter().copied(), parse, 0, |sum, n| Ok(sum + n))
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
    // The total so far and what adds to it, which are gone after a failure. The lock is held while
    // the function runs: there is one call at a time.
    let total = Mutex::new(Some((initial, reduce)));
    let add = |item| {
        let mapped = map(item)?;
        let mut total = locked(&total);
        if let Some((sum, mut reduce)) = total.take() {
            *total = Some((reduce(sum, mapped)?, reduce));
        }
        Ok(())
    };
    scope::Builder::new().limit(parallelism).open(|s| {
        let mut interrupted = false;
        for item in items {
            // A join of threads that are all over would not hear it, and there are items left.
            interrupted = thread::is_interrupted();
            if interrupted || s.is_cancelled() {
                s.cancel();
                break;
            }
            let add = &add;
            s.fork(move || add(item));
        }
        match s.join() {
            // When the time is up, that interrupts the thread, too.
            _ if interrupted && is_past(scope::deadline()) => Err(JoinError::TimedOut),
            _ if interrupted => Err(JoinError::Interrupted),
            joined => joined.map(drop).map_err(JoinError::from),
        }
    })?;
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(total.expect("no call has failed").0)
}
