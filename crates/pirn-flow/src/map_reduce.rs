//! Map and reduce: many items at once, one result.
//!
//! A scope has a thread per item, up to a limit at a time. The thread that has mapped an item also
//! reduces it, under a lock. So results wait nowhere but in threads, and memory is bounded even if
//! the reduction is slow or there are many items.

use crate::wait::{is_past, locked};
use core::convert::Infallible;
use pirn::scope::{self, JoinError};
use pirn::thread;
use std::sync::{Mutex, PoisonError};

/// Calls `map` on each item, on a virtual thread per item, at most `parallelism` at a time. Calls
/// `reduce` with the total so far, which begins as `initial`, and each result, and returns the last
/// total.
///
/// Results are reduced as they come, one at a time, not in the order of the items. The calling
/// thread takes an item when there is a thread for it, so there may be any number of items. Both
/// functions may borrow. The caller's deadline applies to both.
///
/// # Errors
/// In each case the remaining items are not taken, and the threads that map are interrupted and
/// waited for.
///
/// - [`JoinError::Panicked`]: `map` or `reduce` has panicked.
/// - [`JoinError::Interrupted`]: the calling thread was interrupted.
/// - [`JoinError::TimedOut`]: the [deadline](pirn::scope::deadline()) of the calling thread passed.
/// - [`JoinError::Fork`]: no thread could be started.
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

/// Does what [`map_reduce`] does, with functions that can fail. The first failure is the result.
///
/// # Errors
/// [`JoinError::Failed`], with the first error of `map` or `reduce`, and the errors of
/// [`map_reduce`].
///
/// # Panics
/// As for [`map_reduce`].
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
    // The total so far and `reduce`, which are gone after a failure. The lock is held during
    // `reduce`, so there is one call at a time.
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
            // Checked here, since a join of finished threads does not see it, and items are left.
            interrupted = thread::is_interrupted();
            if interrupted || s.is_cancelled() {
                s.cancel();
                break;
            }
            let add = &add;
            s.fork(move || add(item));
        }
        match s.join() {
            // A deadline that passes interrupts the thread, too.
            _ if interrupted && is_past(scope::deadline()) => Err(JoinError::TimedOut),
            _ if interrupted => Err(JoinError::Interrupted),
            joined => joined.map(drop).map_err(JoinError::from),
        }
    })?;
    let total = total.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(total.expect("no call has failed").0)
}
