//! State machines: which event leads from which state to which, and what is done on the way.
//!
//! ```text
//!   event --> before (may refuse) --> leaving(old) --> the state changes --> entering(new) --> after
//! ```
//!
//! A panic on the way, of a hook, leaves the state either as it was or changed, never in between.

mod rules;
mod template;

pub use rules::{Change, Rules};
pub use template::{Template, TemplateError};

use crate::actor::{Context, Handle, Ref};
use crate::error::{AskError, Failure};
use core::fmt;
use core::hash::Hash;
use std::error::Error;

/// A state machine: a value that [events](Machine::on_event) change, or as an actor, which is asked
/// with them.
///
/// States and events are values of any types that can be compared. An actor is sent events of its
/// machine as messages; the answer is the new state, or an [`EventError`].
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, EventError, Machine};
/// use Event::{Pull, Push, Turn};
/// use State::{Closed, Locked, Open};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum State { Open, Closed, Locked }
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum Event { Push, Pull, Turn }
///
/// let (ring, rings) = std::sync::mpsc::channel();
/// let bell = actor::consumer(move |event: Event| ring.send(event).unwrap());
/// let door = Machine::template()
///     .on(Closed, Push, Open)
///     .on(Open, Pull, Closed)
///     .on(Closed, Turn, Locked)
///     .on(Locked, Turn, Closed)
///     .entering(Locked, move |change| bell.send(change.event).unwrap())
///     .build()?
///     .start(Closed);
/// assert_eq!(door.ask(Push)??, Open);
/// assert_eq!(door.ask(Turn)?, Err(EventError::Unexpected { state: Open, event: Turn }));
/// assert_eq!(door.ask(Pull)??, Closed);
/// assert_eq!(door.ask(Turn)??, Locked);
/// assert_eq!(rings.recv()?, Turn);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Machine<S, E> {
    rules: Rules<S, E>,
    state: S,
}

impl<S, E> Machine<S, E>
where
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    E: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    fn new(rules: Rules<S, E>, state: S) -> Machine<S, E> {
        let is_known = rules.0.states.contains(&state);
        assert!(is_known, "there is no state {state:?}");
        Machine { rules, state }
    }

    /// Returns the state.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Does what the rules say of an event in the present state, and returns the new state.
    ///
    /// # Errors
    /// See [`EventError`]. The state stays as it is.
    ///
    /// # Examples
    /// ```
    /// let rules = pirn_actor::Machine::template().on(0, '+', 1).on(1, '-', 0).build()?;
    /// let mut switch = rules.machine(0);
    /// assert_eq!(switch.on_event('+'), Ok(1));
    /// assert!(switch.on_event('+').is_err());
    /// assert_eq!(*switch.state(), 1);
    /// # Ok::<(), pirn_actor::TemplateError<i32, char>>(())
    /// ```
    pub fn on_event(&mut self, event: E) -> Result<S, EventError<S, E>> {
        let rules = &*self.rules.0;
        let to = rules.next.get(&self.state).and_then(|of| of.get(&event));
        let state = self.state.clone();
        let Some(to) = to.cloned() else {
            return match rules.stay_on_unexpected {
                true => Ok(state),
                false => Err(EventError::Unexpected { state, event }),
            };
        };
        let change = Change::new(state, event, to);
        for guard in &rules.before {
            if let Err(why) = guard(&change) {
                let (state, event) = (change.from, change.event);
                return Err(EventError::Refused { state, event, why });
            }
        }
        let hooks = |of: Option<&Vec<rules::Hook<S, E>>>| {
            of.into_iter().flatten().for_each(|hook| hook(&change));
        };
        hooks(rules.leaving.get(&change.from));
        self.state = change.to.clone();
        hooks(rules.entering.get(&change.to));
        hooks(Some(&rules.after));
        Ok(change.to)
    }

    /// Puts the machine into a state, from any other, and returns that. No hook is called: there is
    /// no event.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn jump(&mut self, state: S) -> S {
        let is_known = self.rules.0.states.contains(&state);
        assert!(is_known, "there is no state {state:?}");
        core::mem::replace(&mut self.state, state)
    }
}

impl<S, E> Handle<E> for Machine<S, E>
where
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    E: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    type Reply = Result<S, EventError<S, E>>;

    fn handle(&mut self, event: E, _: &Context<Self>) -> Self::Reply {
        self.on_event(event)
    }
}

/// A machine that is an actor.
impl<S, E> Ref<Machine<S, E>>
where
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    E: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// Asks for the state, after the events that have been sent before.
    ///
    /// # Errors
    /// As for [`ask`](Ref::ask).
    pub fn state(&self) -> Result<S, AskError> {
        self.run(|machine| machine.state.clone())
    }

    /// Puts the machine into a state, as [`Machine::jump`] does, and returns the one before.
    ///
    /// # Errors
    /// As for [`ask`](Ref::ask).
    ///
    /// # Examples
    /// ```
    /// let rules = pirn_actor::Machine::template().on(0, '+', 1).on(1, '+', 2).build().unwrap();
    /// let counter = rules.start(0);
    /// assert_eq!(counter.jump(2), Ok(0));
    /// assert_eq!(counter.state(), Ok(2));
    /// ```
    ///
    /// # Panics
    /// If there is no such state, the caller panics, and the machine goes on.
    pub fn jump(&self, state: S) -> Result<S, AskError> {
        let (unknown, jumped) = (
            state.clone(),
            self.run(move |machine| {
                let is_known = machine.rules.0.states.contains(&state);
                is_known.then(|| machine.jump(state))
            }),
        );
        let before = jumped?;
        Ok(before.unwrap_or_else(|| panic!("there is no state {unknown:?}")))
    }
}

impl<S: Clone, E> Clone for Machine<S, E> {
    fn clone(&self) -> Machine<S, E> {
        Machine {
            rules: self.rules.clone(),
            state: self.state.clone(),
        }
    }
}

impl<S: fmt::Debug, E> fmt::Debug for Machine<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Machine")
            .field("state", &self.state)
            .finish_non_exhaustive()
    }
}

/// Why an event has not changed a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventError<S, E> {
    /// The rules say nothing of this event in this state.
    Unexpected {
        /// The state, in which the machine still is.
        state: S,
        /// The event.
        event: E,
    },
    /// Who is asked [before](Template::before) a change has refused it.
    Refused {
        /// The state, in which the machine still is.
        state: S,
        /// The event.
        event: E,
        /// Why.
        why: Failure,
    },
}

impl<S: fmt::Debug, E: fmt::Debug> fmt::Display for EventError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventError::Unexpected { state, event } => {
                write!(f, "{event:?} is not expected in the state {state:?}")
            }
            EventError::Refused { state, event, why } => {
                write!(f, "{event:?} in the state {state:?}: {why}")
            }
        }
    }
}

impl<S: fmt::Debug, E: fmt::Debug> Error for EventError<S, E> {}
