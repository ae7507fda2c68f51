//! Recipes: how an actor's state is made, at first and after each failure.

use super::handler::Context;
use crate::error::{Exit, Failure, discard};
use core::time::Duration;
use pirn::thread::Panic;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// Functions that an actor, or a worker of a pool, calls when it begins and when it ends. For
/// states made by [`hooked`].
///
/// # Examples
/// A session that ends when its connection does, and by itself after a time:
/// ```
/// use pirn_actor::{self as actor, Address, Builder, Context, Exit, Handler};
/// use pirn_actor::lifecycle::{Lifecycle, hooked};
/// use std::time::Duration;
///
/// struct Session {
///     connection: Address<String>,
///     log: Address<String>,
/// }
/// enum Event {
///     ConnectionLost(Exit),
///     Expired,
/// }
/// impl Lifecycle for Session {
///     fn started(&mut self, context: &Context<Self>) {
///         context.watch(&self.connection, Event::ConnectionLost);
///         context.send_after(Duration::from_secs(3600), Event::Expired);
///     }
///     fn stopped(&mut self, exit: &Exit) {
///         let _ = self.log.send(format!("the session is over: {exit}"));
///     }
/// }
/// impl Handler<Event> for Session {
///     type Reply = ();
///     fn handle(&mut self, event: Event, context: &Context<Self>) {
///         match event {
///             Event::ConnectionLost(_) | Event::Expired => context.stop(),
///         }
///     }
/// }
/// let (tell, told) = std::sync::mpsc::channel();
/// let log = actor::consumer(move |line: String| tell.send(line).unwrap());
/// let connection = actor::consumer(|_: String| ());
/// let peer = connection.clone();
/// let session = Builder::new().spawn(hooked(move || Session {
///     connection: peer.clone(),
///     log: log.clone(),
/// }))?;
/// session.ready().unwrap();
/// connection.kill();
/// assert_eq!(told.recv()?, "the session is over: stopped");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Lifecycle: Sized {
    /// Called when the recipe has made this state, at first or after a failure, before the first
    /// message. A panic is a failure of the actor, and the state is dropped without `stopped`.
    fn started(&mut self, context: &Context<Self>) {
        let _ = context;
    }

    /// Called when a state that has started is about to be dropped: when the actor ends, when its
    /// supervisor restarts it together with another child ([`Exit::Stopped`]), and after a failure
    /// ([`Exit::Failed`]), whether or not the actor restarts. After a panic the state may be half
    /// changed. After a kill the blocking calls of this function fail at once. A panic of this
    /// function makes an end a failure.
    fn stopped(&mut self, exit: &Exit) {
        let _ = exit;
    }
}

/// Makes a recipe for states with a [`Lifecycle`].
pub fn hooked<F>(recipe: F) -> Hooked<F> {
    Hooked(recipe)
}

/// A recipe for states with a [`Lifecycle`]: see [`hooked`].
#[derive(Clone, Copy, Debug)]
pub struct Hooked<F>(F);

/// A recipe: a closure that makes a state, or such a closure in [`hooked`].
pub trait IntoRecipe<S> {
    #[doc(hidden)]
    type Make: FnMut() -> S + Send + 'static;

    #[doc(hidden)]
    fn into_parts(self) -> (Self::Make, Option<Hooks<S>>);
}

impl<S, F: FnMut() -> S + Send + 'static> IntoRecipe<S> for F {
    type Make = F;

    fn into_parts(self) -> (F, Option<Hooks<S>>) {
        (self, None)
    }
}

impl<S: Lifecycle, F: FnMut() -> S + Send + 'static> IntoRecipe<S> for Hooked<F> {
    type Make = F;

    fn into_parts(self) -> (F, Option<Hooks<S>>) {
        (self.0, Some(Hooks::of()))
    }
}

/// The functions of a [`Lifecycle`].
pub struct Hooks<S> {
    pub(super) started: fn(&mut S, &Context<S>),
    pub(super) stopped: fn(&mut S, &Exit),
}

impl<S: Lifecycle> Hooks<S> {
    pub(crate) fn of() -> Hooks<S> {
        Hooks {
            started: S::started,
            stopped: S::stopped,
        }
    }
}

impl<S> Clone for Hooks<S> {
    fn clone(&self) -> Hooks<S> {
        *self
    }
}

impl<S> Copy for Hooks<S> {}

/// The recipe of an actor, with the hooks of its states.
pub(crate) struct Recipe<S>(Option<Box<Steps<S>>>);

type Make<S> = dyn FnMut() -> Result<S, Failure> + Send;

struct Steps<S> {
    make: Option<Box<Make<S>>>,
    hooks: Option<Hooks<S>>,
    /// When the state was made anew, as far back as [`Restarts`] counts.
    made: VecDeque<Instant>,
}

impl<S> Recipe<S> {
    /// No recipe: the first failure ends the actor.
    pub(crate) const NONE: Recipe<S> = Recipe(None);

    pub(crate) fn new(
        make: impl FnMut() -> Result<S, Failure> + Send + 'static,
        hooks: Option<Hooks<S>>,
    ) -> Recipe<S> {
        Recipe::of(Some(Box::new(make)), hooks)
    }

    /// A recipe that makes no state, for an actor whose given state has hooks.
    pub(crate) fn hooks(hooks: Hooks<S>) -> Recipe<S> {
        Recipe::of(None, Some(hooks))
    }

    fn of(make: Option<Box<Make<S>>>, hooks: Option<Hooks<S>>) -> Recipe<S> {
        Recipe(Some(Box::new(Steps {
            make,
            hooks,
            made: VecDeque::new(),
        })))
    }

    pub(super) fn is_none(&self) -> bool {
        self.0.is_none()
    }

    /// Makes a state and calls its `started` hook. Returns the failure if either panics.
    pub(super) fn make(&mut self, context: &Context<S>) -> Result<S, Failure> {
        let steps = self.0.as_deref_mut();
        let Some((make, hooks)) = steps.and_then(|steps| Some((steps.make.as_mut()?, steps.hooks)))
        else {
            return Err(Failure::new("there is no recipe for another state"));
        };
        let make = || {
            let mut state = make()?;
            if let Some(hooks) = hooks {
                (hooks.started)(&mut state, context);
            }
            Ok(state)
        };
        Panic::catch(make).unwrap_or_else(|panic| Err(Failure::from(&panic)))
    }

    /// Calls the `stopped` hook of a state, and drops the state. Returns the failure if the hook
    /// panics.
    pub(super) fn stop(&self, state: Option<S>, exit: &Exit) -> Option<Failure> {
        let mut state = state?;
        let hooks = self.0.as_deref().and_then(|steps| steps.hooks);
        let stopped = hooks.map(|hooks| Panic::catch(|| (hooks.stopped)(&mut state, exit)));
        discard(state);
        stopped?.err().map(|panic| Failure::from(&panic))
    }

    /// Notes a failure. Returns the pause before the next state is made, or `None` if the actor has
    /// failed too often.
    pub(super) fn restart(&mut self, restarts: &Restarts) -> Option<Duration> {
        let steps = self.0.as_mut().filter(|steps| steps.make.is_some())?;
        restarts.count(&mut steps.made, Instant::now())
    }
}

/// How often an actor may restart, and how long it pauses before.
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
    pub(crate) most: usize,
    pub(crate) within: Duration,
    pub(crate) backoff: Range<Duration>,
}

impl Restarts {
    /// Allows this number of restarts within 10 s, with no pause between failure and restart.
    pub fn at_most(restarts: usize) -> Restarts {
        Restarts {
            most: restarts,
            within: Duration::from_secs(10),
            backoff: Duration::ZERO..Duration::ZERO,
        }
    }

    /// Sets the period in which restarts count.
    pub fn within(mut self, period: Duration) -> Restarts {
        self.within = period;
        self
    }

    /// Sets the pause between a failure and the restart: the start of the range at first, twice as
    /// long after each further failure within the period, up to the end of the range.
    pub fn backoff(mut self, range: Range<Duration>) -> Restarts {
        self.backoff = range;
        self
    }

    /// Counts one more restart. Returns the pause before it, or `None` if it is not allowed.
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
