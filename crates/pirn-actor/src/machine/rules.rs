//! The rules that machines of one kind share.

use super::Machine;
use crate::actor::{Builder, Ref};
use crate::error::Failure;
use core::fmt;
use core::hash::Hash;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// A change of a machine's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<S, E> {
    /// The state before.
    pub from: S,
    /// What leads from it to the other.
    pub event: E,
    /// The state after. It may be the same.
    pub to: S,
}

impl<S, E> Change<S, E> {
    pub(super) fn new(from: S, event: E, to: S) -> Change<S, E> {
        Change { from, event, to }
    }
}

pub(super) type Hook<S, E> = Box<dyn Fn(&Change<S, E>) + Send + Sync>;
pub(super) type Guard<S, E> = Box<dyn Fn(&Change<S, E>) -> Result<(), Failure> + Send + Sync>;

pub(super) struct Inner<S, E> {
    pub(super) states: HashSet<S>,
    pub(super) next: HashMap<S, HashMap<E, S>>,
    pub(super) entering: HashMap<S, Vec<Hook<S, E>>>,
    pub(super) leaving: HashMap<S, Vec<Hook<S, E>>>,
    pub(super) before: Vec<Guard<S, E>>,
    pub(super) after: Vec<Hook<S, E>>,
    pub(super) stay_on_unexpected: bool,
}

/// The rules of state machines of one kind, from which any number of them is made. Made by
/// [`Template::build`](super::Template::build).
///
/// # Examples
/// ```
/// let rules = pirn_actor::Machine::template().on("off", 1, "on").on("on", 0, "off").build()?;
/// let (kitchen, hall) = (rules.start("off"), rules.start("on"));
/// assert_eq!(kitchen.ask(1)??, "on");
/// assert_eq!(hall.ask(0)??, "off");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Rules<S, E>(pub(super) Arc<Inner<S, E>>);

impl<S, E> Rules<S, E>
where
    S: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
    E: Clone + Eq + Hash + fmt::Debug + Send + Sync + 'static,
{
    /// Makes a machine that is an actor, and in this state.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn start(&self, state: S) -> Ref<Machine<S, E>> {
        self.start_by(&Builder::new(), state)
    }

    /// Makes a machine that is an actor of this builder's.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn start_by(&self, builder: &Builder, state: S) -> Ref<Machine<S, E>> {
        builder.spawn_with(self.machine(state))
    }

    /// Makes a machine that is a value.
    ///
    /// # Panics
    /// If there is no such state.
    pub fn machine(&self, state: S) -> Machine<S, E> {
        Machine::new(self.clone(), state)
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
