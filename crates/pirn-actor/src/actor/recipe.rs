//! How an actor's state is made, again after each failure.

use crate::error::Failure;
use core::time::Duration;
use pirn::thread::Panic;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// Makes states.
pub(crate) struct Recipe<S>(Option<Box<Steps<S>>>);

type Make<S> = dyn FnMut() -> Result<S, Failure> + Send;

struct Steps<S> {
    make: Box<Make<S>>,
    /// When the state was made anew, as far as it counts.
    made: VecDeque<Instant>,
}

impl<S> Recipe<S> {
    /// There is none: a failure is the end.
    pub(crate) const NONE: Recipe<S> = Recipe(None);

    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Makes a state. A panic is a failure, too.
    pub(super) fn make(&mut self) -> Result<S, Failure> {
        let Some(steps) = &mut self.0 else {
            return Err(Failure::new("there is no recipe for another state"));
        };
        Panic::catch(&mut steps.make).unwrap_or_else(|panic| Err(Failure::from(&panic)))
    }

    /// Notes a failure. Returns how long to wait until the state is made anew, unless it has failed
    /// too often.
    pub(super) fn restart(&mut self, restarts: &Restarts) -> Option<Duration> {
        let steps = self.0.as_mut()?;
        restarts.count(&mut steps.made, Instant::now())
    }
}

impl<S> Recipe<S> {
    pub(crate) fn new(make: impl FnMut() -> Result<S, Failure> + Send + 'static) -> Recipe<S> {
        Recipe(Some(Box::new(Steps {
            make: Box::new(make),
            made: VecDeque::new(),
        })))
    }
}

/// How often an actor may fail, and how long it waits before it begins anew.
///
/// # Examples
/// ```
/// use pirn_actor::Restarts;
/// use std::time::Duration;
///
/// let restarts = Restarts::at_most(5)
///     .within(Duration::from_secs(10))
///     .backoff(Duration::from_millis(50)..Duration::from_secs(5));
/// # drop(restarts);
/// ```
#[derive(Clone, Debug)]
pub struct Restarts {
    most: usize,
    within: Duration,
    backoff: Range<Duration>,
}

impl Restarts {
    /// As many restarts within 10 s, with no time between failure and restart.
    pub fn at_most(restarts: usize) -> Restarts {
        Restarts {
            most: restarts,
            within: Duration::from_secs(10),
            backoff: Duration::ZERO..Duration::ZERO,
        }
    }

    /// The period in which restarts count.
    pub fn within(mut self, period: Duration) -> Restarts {
        self.within = period;
        self
    }

    /// The time between a failure and the restart: the start of the range the first time, twice as
    /// long each time that it fails again within the period, up to the end of the range.
    pub fn backoff(mut self, range: Range<Duration>) -> Restarts {
        self.backoff = range;
        self
    }

    /// Counts one more restart, if that is allowed, and returns how long to wait before it.
    pub(crate) fn count(&self, made: &mut VecDeque<Instant>, now: Instant) -> Option<Duration> {
        while made
            .front()
            .is_some_and(|at| now.duration_since(*at) > self.within)
        {
            made.pop_front();
        }
        if made.len() >= self.most {
            return None;
        }
        let doublings = u32::try_from(made.len()).unwrap_or(u32::MAX).min(31);
        let pause = self.backoff.start.saturating_mul(1 << doublings);
        made.push_back(now);
        Some(pause.min(self.backoff.end.max(self.backoff.start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_count_within_their_period() {
        let second = Duration::from_secs(1);
        let restarts = Restarts::at_most(2)
            .within(second)
            .backoff(second / 4..second / 2);
        let start = Instant::now();
        let mut made = VecDeque::new();
        assert_eq!(restarts.count(&mut made, start), Some(second / 4));
        assert_eq!(restarts.count(&mut made, start), Some(second / 2));
        assert_eq!(restarts.count(&mut made, start), None);
        assert_eq!(
            restarts.count(&mut made, start + 2 * second),
            Some(second / 4)
        );
    }
}
