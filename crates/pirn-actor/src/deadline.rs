//! The time until which what the running thread asks for may take.

use crate::identity::{Within, current_limit};
use crate::time::Limit;
use std::time::Instant;

/// Calls a function, within which nothing that is asked or sent waits longer than until `deadline`,
/// or than until the time that held before, if that is earlier. What is asked carries it along: a
/// request is not begun afterwards, and its handler's own asks end then, too.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, AskError};
/// use std::time::{Duration, Instant};
///
/// let slow = actor::function(|pause: Duration| std::thread::sleep(pause));
/// let deadline = Instant::now() + Duration::from_millis(10);
/// actor::with_deadline(deadline, || {
///     assert_eq!(slow.ask(Duration::from_millis(100)), Err(AskError::TimedOut));
/// });
/// ```
pub fn with_deadline<T>(deadline: Instant, f: impl FnOnce() -> T) -> T {
    let _within = Within::limit(Limit::at(deadline).min(current_limit()));
    f()
}

/// Returns the time until which what the running thread asks for may take: that of the request that
/// it handles, or that of [`with_deadline`].
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::{Duration, Instant};
///
/// assert_eq!(actor::deadline(), None);
/// let deadline = Instant::now() + Duration::from_secs(1);
/// actor::with_deadline(deadline, || assert_eq!(actor::deadline(), Some(deadline)));
/// ```
pub fn deadline() -> Option<Instant> {
    current_limit().instant()
}
