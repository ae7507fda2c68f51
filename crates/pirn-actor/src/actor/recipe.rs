//! Recipes: how an actor's state is made, at first and after each failure.

use super::handler::Context;
use crate::error::{Exit, Failure, discard};
use core::fmt;
use core::time::Duration;
use pirn::thread::Panic;
use std::collections::VecDeque;
use std::ops::Range;
use std::time::Instant;

/// The functions that an actor, or a worker of a pool, calls when a state begins and ends.
///
/// They are given where the actor is made, with its recipe or its state: see [`IntoRecipe`] and
/// [`Builder::spawn_hooked`](crate::Builder::spawn_hooked). Data that they need is in the state.
///
/// # Examples
/// A session that ends when its connection does, and by itself after a time:
/// ```
/// use pirn_actor::{self as actor, Address, Builder, Context, Exit, Handler};
/// use pirn_actor::lifecycle::Hooks;
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
/// impl Session {
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
/// let session = Session { connection: connection.clone(), log };
/// let hooks = Hooks::new().started(Session::started).stopped(Session::stopped);
/// let session = Builder::new().spawn_hooked(session, hooks)?;
/// session.ready().unwrap();
/// connection.kill();
/// assert_eq!(told.recv()?, "the session is over: stopped");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Hooks<S> {
    started: fn(&mut S, &Context<S>),
    stopped: fn(&mut S, &Exit),
}

impl<S> Hooks<S> {
    /// Returns hooks that do nothing.
    pub fn new() -> Hooks<S> {
        Hooks {
            started: |_, _| (),
            stopped: |_, _| (),
        }
    }

    /// Sets the function that is called with each new state before the first message: the given
    /// one, and each that the recipe makes. A panic is a failure of the actor, and the state is
    /// dropped without `stopped`.
    pub fn started(mut self, f: fn(&mut S, &Context<S>)) -> Hooks<S> {
        self.started = f;
        self
    }

    /// Sets the function that is called when a state that has started is about to be dropped: when
    /// the actor ends, when its supervisor restarts it together with another child
    /// ([`Exit::Stopped`]), and after a failure ([`Exit::Failed`]), whether or not the actor
    /// restarts. After a panic the state may be half changed. After a kill the blocking calls of
    /// this function fail at once. A panic of this function makes an end a failure.
    pub fn stopped(mut self, f: fn(&mut S, &Exit)) -> Hooks<S> {
        self.stopped = f;
        self
    }
}

impl<S> Default for Hooks<S> {
    fn default() -> Hooks<S> {
        Hooks::new()
    }
}

impl<S> Clone for Hooks<S> {
    fn clone(&self) -> Hooks<S> {
        *self
    }
}

impl<S> Copy for Hooks<S> {}

impl<S> fmt::Debug for Hooks<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Hooks")
    }
}

/// A recipe: a closure that makes a state, or a pair of such a closure and [`Hooks`].
///
/// # Examples
/// ```
/// use pirn_actor::Builder;
/// use pirn_actor::lifecycle::Hooks;
///
/// let hooks = Hooks::new().started(|list: &mut Vec<u32>, _| list.push(7));
/// let list = Builder::new().spawn((Vec::new, hooks))?;
/// assert_eq!(list.run(|list| list.pop()), Ok(Some(7)));
/// # Ok::<(), std::io::Error>(())
/// ```
pub trait IntoRecipe<S> {
    #[doc(hidden)]
    type Make: FnMut() -> S + Send + 'static;

    #[doc(hidden)]
    fn into_parts(self) -> (Self::Make, Hooks<S>);
}

impl<S, F: FnMut() -> S + Send + 'static> IntoRecipe<S> for F {
    type Make = F;

    fn into_parts(self) -> (F, Hooks<S>) {
        (self, Hooks::new())
    }
}

impl<S, F: FnMut() -> S + Send + 'static> IntoRecipe<S> for (F, Hooks<S>) {
    type Make = F;

    fn into_parts(self) -> (F, Hooks<S>) {
        self
    }
}

/// The recipe of an actor, with the hooks of its states.
pub(crate) struct Recipe<S>(Option<Box<Steps<S>>>);

type Make<S> = dyn FnMut() -> Result<S, Failure> + Send;

struct Steps<S> {
    /// The first state, if the actor was given one.
    given: Option<S>,
    make: Option<Box<Make<S>>>,
    hooks: Hooks<S>,
    /// When the state was made anew, as far back as [`Restarts`] counts.
    made: VecDeque<Instant>,
}

impl<S> Recipe<S> {
    /// No recipe: the first failure ends the actor.
    pub(crate) const NONE: Recipe<S> = Recipe(None);

    pub(crate) fn new(
        make: impl FnMut() -> Result<S, Failure> + Send + 'static,
        hooks: Hooks<S>,
    ) -> Recipe<S> {
        Recipe::of(None, Some(Box::new(make)), hooks)
    }

    /// A recipe for this state only.
    pub(crate) fn once(state: S, hooks: Hooks<S>) -> Recipe<S> {
        Recipe::of(Some(state), None, hooks)
    }

    fn of(given: Option<S>, make: Option<Box<Make<S>>>, hooks: Hooks<S>) -> Recipe<S> {
        Recipe(Some(Box::new(Steps {
            given,
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
        let make = || {
            let none = || Failure::new("there is no recipe for another state");
            let steps = self.0.as_deref_mut().ok_or_else(none)?;
            let mut state = match (steps.given.take(), &mut steps.make) {
                (Some(state), _) => state,
                (None, Some(make)) => make()?,
                (None, None) => return Err(none()),
            };
            (steps.hooks.started)(&mut state, context);
            Ok(state)
        };
        Panic::catch(make).unwrap_or_else(|panic| Err(Failure::from(&panic)))
    }

    /// Calls the `stopped` hook of a state, and drops the state. Returns the failure if the hook
    /// panics.
    pub(super) fn stop(&self, state: Option<S>, exit: &Exit) -> Option<Failure> {
        let mut state = state?;
        let hooks = self.0.as_deref().map(|steps| steps.hooks);
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
