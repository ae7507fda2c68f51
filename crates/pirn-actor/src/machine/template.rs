//! How a state machine is described, and what can be wrong with that.

use super::Machine;
use super::rules::{Change, Guard, Hook, Inner, Rules};
use crate::actor::{Ask, Mode, Recipient};
use crate::error::Failure;
use core::fmt;
use core::hash::Hash;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::Arc;

/// A description of a state machine: which event leads from which state to which, and what is done
/// on the way. Made by [`Machine::template`].
///
/// # Examples
/// ```
/// use pirn_actor::Machine;
/// use std::sync::mpsc;
///
/// let (tell, told) = mpsc::channel();
/// let traffic = Machine::template()
///     .on("red", "go", "green")
///     .on("green", "stop", "red")
///     .entering("green", move |change| tell.send(change.from).unwrap())
///     .build()?;
/// let light = traffic.start("red");
/// assert_eq!(light.ask("go").unwrap().unwrap(), "green");
/// assert_eq!(told.recv().unwrap(), "red");
/// # Ok::<(), pirn_actor::TemplateError<&str, &str>>(())
/// ```
#[must_use = "a template is built"]
pub struct Template<S, E> {
    states: Option<HashSet<S>>,
    transitions: Vec<(S, E, S)>,
    entering: HashMap<S, Vec<Hook<S, E>>>,
    leaving: HashMap<S, Vec<Hook<S, E>>>,
    before: Vec<Guard<S, E>>,
    after: Vec<Hook<S, E>>,
    stay_on_unexpected: bool,
}

impl<S, E> Template<S, E>
where
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    E: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    pub(super) fn new() -> Template<S, E> {
        Template {
            states: None,
            transitions: Vec::new(),
            entering: HashMap::new(),
            leaving: HashMap::new(),
            before: Vec::new(),
            after: Vec::new(),
            stay_on_unexpected: false,
        }
    }

    /// Declares all states. Then any other one is an error of [`build`](Template::build).
    pub fn states(mut self, states: impl IntoIterator<Item = S>) -> Template<S, E> {
        self.states.get_or_insert_default().extend(states);
        self
    }

    /// In `state`, `event` leads to `target`, which may be the same state.
    pub fn on(mut self, state: S, event: E, target: S) -> Template<S, E> {
        self.transitions.push((state, event, target));
        self
    }

    /// Has a function called when a state has been entered.
    pub fn entering(
        mut self,
        state: S,
        f: impl Fn(&Change<S, E>) + Send + Sync + 'static,
    ) -> Template<S, E> {
        self.entering.entry(state).or_default().push(Box::new(f));
        self
    }

    /// Has a function called when a state is about to be left.
    pub fn leaving(
        mut self,
        state: S,
        f: impl Fn(&Change<S, E>) + Send + Sync + 'static,
    ) -> Template<S, E> {
        self.leaving.entry(state).or_default().push(Box::new(f));
        self
    }

    /// Has an actor asked before each change. If it answers with an error, or not at all, the state
    /// stays, and the event is [`Refused`](super::EventError::Refused).
    ///
    /// The machine keeps the actor open.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{self as actor, EventError, Machine, StateChange};
    ///
    /// let guard = actor::function(|change: StateChange<&str, &str>| match change.event {
    ///     "fly" => Err("it is too heavy"),
    ///     _ => Ok(()),
    /// });
    /// let mut door = Machine::template()
    ///     .on("closed", "push", "open")
    ///     .on("closed", "fly", "above")
    ///     .before(guard)
    ///     .build()?
    ///     .machine("closed");
    /// let error = door.on_event("fly").unwrap_err();
    /// assert_eq!(error.to_string(), r#""fly" in the state "closed": it is too heavy"#);
    /// assert_eq!(door.on_event("push"), Ok("open"));
    /// # Ok::<(), actor::TemplateError<&str, &str>>(())
    /// ```
    pub fn before<A, W>(mut self, guard: A) -> Template<S, E>
    where
        A: Ask<Change<S, E>, Reply = Result<(), W>> + Send + Sync + 'static,
        W: fmt::Display,
    {
        let ask = move |change: &Change<S, E>| match guard.ask(change.clone()) {
            Ok(Ok(())) => Ok(()),
            Ok(Err(why)) => Err(Failure::new(why.to_string())),
            Err(error) => Err(Failure::new(error.to_string())),
        };
        self.before.push(Box::new(ask));
        self
    }

    /// Has an actor, or another receiver, sent each change when it is done. It is not kept open.
    /// The machine waits for room in its mailbox.
    pub fn after(mut self, receiver: &impl Recipient<Change<S, E>>) -> Template<S, E> {
        let target = receiver.target();
        let tell = move |change: &Change<S, E>| drop(target.tell(change.clone(), Mode::Wait));
        self.after.push(Box::new(tell));
        self
    }

    /// Has the machine stay as it is when an event is not expected in its state. Without this, that
    /// is an error.
    pub fn stay_on_unexpected(mut self) -> Template<S, E> {
        self.stay_on_unexpected = true;
        self
    }

    /// Makes the rules of machines.
    ///
    /// # Errors
    /// See [`TemplateError`].
    pub fn build(self) -> Result<Rules<S, E>, TemplateError<S, E>> {
        let mut next: HashMap<S, HashMap<E, S>> = HashMap::new();
        let mut known = self.states.clone().unwrap_or_default();
        for (state, event, target) in self.transitions {
            if self.states.is_none() {
                known.extend([state.clone(), target.clone()]);
            }
            if let Some(state) = [&state, &target].into_iter().find(|s| !known.contains(s)) {
                return Err(TemplateError::UnknownState(state.clone()));
            }
            let events = next.entry(state.clone()).or_default();
            if events.contains_key(&event) {
                return Err(TemplateError::TwoTargets { state, event });
            }
            events.insert(event, target);
        }
        let hooked = self.entering.keys().chain(self.leaving.keys());
        if let Some(state) = hooked.into_iter().find(|state| !known.contains(state)) {
            return Err(TemplateError::UnknownState(state.clone()));
        }
        if known.len() < 2 {
            return Err(TemplateError::TooFewStates);
        }
        Ok(Rules(Arc::new(Inner {
            states: known,
            next,
            entering: self.entering,
            leaving: self.leaving,
            before: self.before,
            after: self.after,
            stay_on_unexpected: self.stay_on_unexpected,
        })))
    }
}

impl<S, E> Machine<S, E>
where
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    E: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// Begins the description of a machine.
    pub fn template() -> Template<S, E> {
        Template::new()
    }
}

impl<S: fmt::Debug, E: fmt::Debug> fmt::Debug for Template<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("transitions", &self.transitions)
            .finish_non_exhaustive()
    }
}

/// What is wrong with a [`Template`].
///
/// # Examples
/// ```
/// use pirn_actor::{Machine, TemplateError};
///
/// let twice = Machine::template().on(1, "next", 2).on(1, "next", 3).build();
/// assert_eq!(twice.unwrap_err(), TemplateError::TwoTargets { state: 1, event: "next" });
/// let unknown = Machine::template().states([1, 2]).on(1, "next", 3).build();
/// assert_eq!(unknown.unwrap_err(), TemplateError::UnknownState(3));
/// let alone = Machine::template().on(1, "next", 1).build();
/// assert_eq!(alone.unwrap_err(), TemplateError::TooFewStates);
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TemplateError<S, E> {
    /// A state is none of those that are declared; or none that an event leads to or from.
    UnknownState(S),
    /// An event would lead from one state to two others.
    TwoTargets {
        /// The state.
        state: S,
        /// The event.
        event: E,
    },
    /// There are fewer than two states.
    TooFewStates,
}

impl<S: fmt::Debug, E: fmt::Debug> fmt::Display for TemplateError<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TemplateError::UnknownState(state) => write!(f, "there is no state {state:?}"),
            TemplateError::TwoTargets { state, event } => {
                write!(f, "{event:?} in the state {state:?} has two targets")
            }
            TemplateError::TooFewStates => f.write_str("there are fewer than two states"),
        }
    }
}

impl<S: fmt::Debug, E: fmt::Debug> Error for TemplateError<S, E> {}
