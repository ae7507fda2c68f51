//! State machines: which event leads from which state to which, and the hooks on the way.
//!
//! ```text
//!   event --> before (may refuse) --> leaving(old) --> the state changes --> entering(new) --> after
//! ```
//!
//! A panic of a hook leaves the state either as it was or changed, never in between.

use core::fmt;
use core::hash::Hash;
use pirn_actor::{Context, Handler};
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::Arc;

/// A state machine: a value that [events](Machine::on_event) change.
///
/// States and events are values of any types that can be compared. A machine can be the state of an
/// actor: its messages are events, and its answers are new states, or [`EventError`]s.
///
/// # Examples
/// ```
/// use Event::{Pull, Push, Turn};
/// use State::{Closed, Locked, Open};
/// use pirn_actor as actor;
/// use pirn_flow::machine::{EventError, Machine};
///
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum State { Open, Closed, Locked }
/// #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
/// enum Event { Push, Pull, Turn }
///
/// let (ring, rings) = std::sync::mpsc::channel();
/// let bell = actor::consumer(move |event: Event| ring.send(event).unwrap());
/// let rules = Machine::template()
///     .on(Closed, Push, Open)
///     .on(Open, Pull, Closed)
///     .on(Closed, Turn, Locked)
///     .on(Locked, Turn, Closed)
///     .entering(Locked, move |change| bell.send(change.event).unwrap())
///     .build()?;
/// let door = actor::spawn(rules.machine(Closed));
/// assert_eq!(door.ask(Push)??, Open);
/// assert_eq!(door.ask(Turn)?, Err(EventError::Unexpected { state: Open, event: Turn }));
/// assert_eq!(door.ask(Pull)??, Closed);
/// assert_eq!(door.ask(Turn)??, Locked);
/// assert_eq!(door.run(|machine| *machine.state())?, Locked);
/// assert_eq!(rings.recv()?, Turn);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Machine<S, E> {
    rules: Rules<S, E>,
    state: S,
}

impl<S, E> Machine<S, E>
where
    S: Clone + Eq + Hash,
    E: Eq + Hash,
{
    /// Begins the description of a machine.
    pub fn template() -> Template<S, E> {
        Template {
            transitions: Vec::new(),
            are_declared: false,
            rules: Inner {
                states: HashSet::new(),
                next: HashMap::new(),
                before: Vec::new(),
                leaving: Vec::new(),
                entering: Vec::new(),
                after: Vec::new(),
                stay_on_unexpected: false,
            },
        }
    }

    /// Returns the state.
    pub fn state(&self) -> &S {
        &self.state
    }

    /// Applies the rule for an event in the present state, and returns the new state.
    ///
    /// # Errors
    /// See [`EventError`]. The state stays as it is.
    ///
    /// # Examples
    /// ```
    /// use pirn_flow::machine::Machine;
    ///
    /// let rules = Machine::template().on(0, '+', 1).on(1, '-', 0).build()?;
    /// let mut switch = rules.machine(0);
    /// assert_eq!(switch.on_event('+'), Ok(1));
    /// assert!(switch.on_event('+').is_err());
    /// assert_eq!(*switch.state(), 1);
    /// # Ok::<(), pirn_flow::machine::TemplateError<i32, char>>(())
    /// ```
    pub fn on_event(&mut self, event: E) -> Result<S, EventError<S, E>> {
        let rules = &*self.rules.0;
        let change = (self.state.clone(), event);
        let to = rules.next.get(&change).cloned();
        let (from, event) = change;
        let change = match to {
            Some(to) => Change { from, event, to },
            None if rules.stay_on_unexpected => return Ok(from),
            None => return Err(EventError::Unexpected { state: from, event }),
        };
        for guard in &rules.before {
            if let Err(why) = guard(&change) {
                let (state, event) = (change.from, change.event);
                return Err(EventError::Refused { state, event, why });
            }
        }
        let call = |hooks: &[(S, Hook<S, E>)], state| {
            let hooks = hooks.iter().filter(|(of, _)| of == state);
            hooks.for_each(|(_, hook)| hook(&change));
        };
        call(&rules.leaving, &change.from);
        self.state = change.to.clone();
        call(&rules.entering, &change.to);
        rules.after.iter().for_each(|hook| hook(&change));
        Ok(change.to)
    }

    /// Puts the machine into any state, and returns the state before. Calls no hook, since there is
    /// no event. Returns `None`, and changes nothing, if the rules have no such state.
    ///
    /// # Examples
    /// ```
    /// use pirn_flow::machine::Machine;
    ///
    /// let rules = Machine::template().on(0, '+', 1).on(1, '+', 2).build().unwrap();
    /// let mut counter = rules.machine(0);
    /// assert_eq!(counter.jump(2), Some(0));
    /// assert_eq!(counter.jump(3), None);
    /// assert_eq!(*counter.state(), 2);
    /// ```
    pub fn jump(&mut self, state: S) -> Option<S> {
        let is_known = self.rules.0.states.contains(&state);
        is_known.then(|| core::mem::replace(&mut self.state, state))
    }
}

impl<S, E> Handler<E> for Machine<S, E>
where
    S: Clone + Eq + Hash + Send,
    E: Eq + Hash + Send,
{
    type Reply = Result<S, EventError<S, E>>;

    fn handle(&mut self, event: E, _: &Context<Self>) -> Self::Reply {
        self.on_event(event)
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

/// The rules of a kind of state machine. They make any number of machines. Made by
/// [`Template::build`].
///
/// # Examples
/// ```
/// use pirn_flow::machine::Machine;
///
/// let rules = Machine::template().on("off", 1, "on").on("on", 0, "off").build()?;
/// let (mut kitchen, mut hall) = (rules.machine("off"), rules.machine("on"));
/// assert_eq!((kitchen.on_event(1)?, hall.on_event(0)?), ("on", "off"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rules<S, E>(Arc<Inner<S, E>>);

type Hook<S, E> = Box<dyn Fn(&Change<S, E>) + Send + Sync>;
type Guard<S, E> = Box<dyn Fn(&Change<S, E>) -> Result<(), String> + Send + Sync>;

struct Inner<S, E> {
    states: HashSet<S>,
    next: HashMap<(S, E), S>,
    before: Vec<Guard<S, E>>,
    leaving: Vec<(S, Hook<S, E>)>,
    entering: Vec<(S, Hook<S, E>)>,
    after: Vec<Hook<S, E>>,
    stay_on_unexpected: bool,
}

impl<S: Eq + Hash + fmt::Debug, E> Rules<S, E> {
    /// Makes a machine that is in this state.
    ///
    /// # Panics
    /// If the rules have no such state.
    pub fn machine(&self, state: S) -> Machine<S, E> {
        let is_known = self.0.states.contains(&state);
        assert!(is_known, "there is no state {state:?}");
        let rules = self.clone();
        Machine { rules, state }
    }
}

impl<S, E> Clone for Rules<S, E> {
    fn clone(&self) -> Rules<S, E> {
        Rules(Arc::clone(&self.0))
    }
}

impl<S: fmt::Debug, E: fmt::Debug> fmt::Debug for Rules<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Rules").field(&self.0.next).finish()
    }
}

/// A change of a machine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<S, E> {
    /// The state before.
    pub from: S,
    /// The event.
    pub event: E,
    /// The state after. It may be the same.
    pub to: S,
}

/// A description of a state machine: which event leads from which state to which, and the hooks on
/// the way. Made by [`Machine::template`].
///
/// Hooks may block, ask actors and send to them. An actor that a hook owns stays open as long as
/// the rules.
///
/// # Examples
/// ```
/// use pirn_flow::machine::Machine;
/// use std::sync::mpsc;
///
/// let (tell, told) = mpsc::channel();
/// let traffic = Machine::template()
///     .on("red", "go", "green")
///     .on("green", "stop", "red")
///     .entering("green", move |change| tell.send(change.from).unwrap())
///     .build()?;
/// let mut light = traffic.machine("red");
/// assert_eq!(light.on_event("go"), Ok("green"));
/// assert_eq!(told.recv().unwrap(), "red");
/// # Ok::<(), pirn_flow::machine::TemplateError<&str, &str>>(())
/// ```
#[must_use = "a template is built"]
pub struct Template<S, E> {
    transitions: Vec<(S, E, S)>,
    are_declared: bool,
    /// Without the transitions.
    rules: Inner<S, E>,
}

impl<S, E> Template<S, E>
where
    S: Clone + Eq + Hash,
    E: Eq + Hash,
{
    /// Declares all states. Any other state is then an error of [`build`](Template::build).
    pub fn states(mut self, states: impl IntoIterator<Item = S>) -> Template<S, E> {
        self.are_declared = true;
        self.rules.states.extend(states);
        self
    }

    /// Adds a rule: in `state`, `event` leads to `target`, which may be the same state.
    pub fn on(mut self, state: S, event: E, target: S) -> Template<S, E> {
        self.transitions.push((state, event, target));
        self
    }

    /// Adds a hook that runs before each change and may refuse it: the state then stays, and the
    /// event is [`Refused`](EventError::Refused).
    ///
    /// # Examples
    /// An actor decides. If it does not answer, the change is refused, too:
    /// ```
    /// use pirn_actor as actor;
    /// use pirn_flow::machine::{Change, Machine};
    ///
    /// let guard = actor::function(|change: Change<&str, &str>| match change.event {
    ///     "fly" => Err("it is too heavy".to_string()),
    ///     _ => Ok(()),
    /// });
    /// let mut door = Machine::template()
    ///     .on("closed", "push", "open")
    ///     .on("closed", "fly", "above")
    ///     .before(move |change| guard.ask(*change).unwrap_or_else(|error| Err(error.to_string())))
    ///     .build()?
    ///     .machine("closed");
    /// let error = door.on_event("fly").unwrap_err();
    /// assert_eq!(error.to_string(), r#""fly" in the state "closed": it is too heavy"#);
    /// assert_eq!(door.on_event("push"), Ok("open"));
    /// # Ok::<(), pirn_flow::machine::TemplateError<&str, &str>>(())
    /// ```
    pub fn before<W: fmt::Display>(
        mut self,
        f: impl Fn(&Change<S, E>) -> Result<(), W> + Send + Sync + 'static,
    ) -> Template<S, E> {
        let guard = move |change: &_| f(change).map_err(|why| why.to_string());
        self.rules.before.push(Box::new(guard));
        self
    }

    /// Adds a hook that runs before the machine leaves a state.
    pub fn leaving(
        mut self,
        state: S,
        f: impl Fn(&Change<S, E>) + Send + Sync + 'static,
    ) -> Template<S, E> {
        self.rules.leaving.push((state, Box::new(f)));
        self
    }

    /// Adds a hook that runs after the machine has entered a state.
    pub fn entering(
        mut self,
        state: S,
        f: impl Fn(&Change<S, E>) + Send + Sync + 'static,
    ) -> Template<S, E> {
        self.rules.entering.push((state, Box::new(f)));
        self
    }

    /// Adds a hook that runs after each change.
    pub fn after(mut self, f: impl Fn(&Change<S, E>) + Send + Sync + 'static) -> Template<S, E> {
        self.rules.after.push(Box::new(f));
        self
    }

    /// Leaves the machine as it is if an event is unexpected in its state. By default that is an
    /// error.
    pub fn stay_on_unexpected(mut self) -> Template<S, E> {
        self.rules.stay_on_unexpected = true;
        self
    }

    /// Makes the rules of machines.
    ///
    /// # Errors
    /// See [`TemplateError`].
    pub fn build(self) -> Result<Rules<S, E>, TemplateError<S, E>> {
        let mut rules = self.rules;
        for (from, event, to) in self.transitions {
            if !self.are_declared {
                rules.states.extend([from.clone(), to.clone()]);
            }
            let change = (from, event);
            if rules.next.contains_key(&change) {
                let (state, event) = change;
                return Err(TemplateError::TwoTargets { state, event });
            }
            rules.next.insert(change, to);
        }
        let ends = rules.next.iter().flat_map(|((from, _), to)| [from, to]);
        let hooked = rules.entering.iter().chain(&rules.leaving);
        let mut named = ends.chain(hooked.map(|(state, _)| state));
        if let Some(state) = named.find(|state| !rules.states.contains(state)) {
            return Err(TemplateError::UnknownState(state.clone()));
        }
        drop(named);
        match rules.states.len() {
            0 | 1 => Err(TemplateError::TooFewStates),
            _ => Ok(Rules(Arc::new(rules))),
        }
    }
}

impl<S: fmt::Debug, E: fmt::Debug> fmt::Debug for Template<S, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Template")
            .field("transitions", &self.transitions)
            .finish_non_exhaustive()
    }
}

/// Why a [`Template`] is invalid.
///
/// # Examples
/// ```
/// use pirn_flow::machine::{Machine, TemplateError};
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
    /// A state was not declared. If no states are declared: no event leads to it or from it.
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

/// Why an event has not changed a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventError<S, E> {
    /// There is no rule for this event in this state.
    Unexpected {
        /// The state, in which the machine still is.
        state: S,
        /// The event.
        event: E,
    },
    /// A [`before`](Template::before) hook has refused the change.
    Refused {
        /// The state, in which the machine still is.
        state: S,
        /// The event.
        event: E,
        /// Why.
        why: String,
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
