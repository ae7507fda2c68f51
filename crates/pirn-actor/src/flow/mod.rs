//! Streams of messages: pipelines, batches, limited rates.

mod batch;
mod pipeline;
pub use crate::each::each;
pub use batch::batch;

use crate::{Address, Builder};
use core::time::Duration;

/// Makes an actor that calls `f` for each message, with at least this time between the starts of
/// two messages. It answers with the result of `f`.
///
/// See [`Builder::rate_limit`] for actors of other kinds.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::{Duration, Instant};
///
/// let start = Instant::now();
/// let search = actor::flow::rate_limited(Duration::from_millis(2), |word: &str| word.len());
/// assert_eq!(search.ask("warp"), Ok(4)); // at once
/// assert_eq!(search.ask("weft!"), Ok(5)); // 2 ms after the other
/// assert!(start.elapsed() >= Duration::from_millis(2));
/// ```
pub fn rate_limited<M, R, F>(least_between: Duration, f: F) -> Address<M, R>
where
    M: Send + 'static,
    R: Send + 'static,
    F: FnMut(M) -> R + Send + 'static,
{
    Builder::new().rate_limit(least_between).function(f)
}
