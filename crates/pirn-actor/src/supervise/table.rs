//! What a supervisor's thread and its handle share: who the children are, and how they are.

use super::plan::At;
use crate::actor::{Ending, Mortal};
use crate::identity::Identity;
use crate::poison::locked;
use crate::snapshot;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

/// A supervisor, for those who look something up.
pub(super) struct Table {
    pub(super) identity: Identity,
    pub(super) ending: Ending,
    pub(super) entries: Vec<Entry>,
    /// The number of events that the supervisor has heard.
    heard: AtomicU64,
}

impl Table {
    pub(super) fn new(name: Arc<str>, entries: Vec<Entry>) -> Table {
        Table {
            identity: Identity::new(Some(name)),
            ending: Ending::new(),
            entries,
            heard: AtomicU64::new(0),
        }
    }

    pub(super) fn heard(&self) {
        // Relaxed: for people.
        self.heard.fetch_add(1, Ordering::Relaxed);
    }
}

impl snapshot::Seen for Table {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn kind(&self) -> &'static str {
        "supervisor"
    }

    fn load(&self) -> snapshot::Load {
        snapshot::Load {
            // Relaxed: for people.
            begun: self.heard.load(Ordering::Relaxed),
            waiting: 0,
            senders: 0,
        }
    }
}

impl Mortal for Table {
    fn ending(&self) -> &Ending {
        &self.ending
    }
}

pub(super) struct Entry {
    pub(super) name: Arc<str>,
    /// The type of the child's state.
    pub(super) kind: &'static str,
    pub(super) what: What,
    seen: Mutex<Seen>,
}

/// What a child is.
pub(super) enum What {
    /// Where an actor's `Ref` or a `Process` is, or how its address is found.
    Actor(Box<dyn Any + Send + Sync>),
    Tree(Arc<Table>),
}

#[derive(Clone, Copy)]
struct Seen {
    state: ChildState,
    restarts: u64,
}

impl Entry {
    pub(super) fn new(name: Arc<str>, kind: &'static str, what: What) -> Entry {
        Entry {
            name,
            kind,
            what,
            seen: Mutex::new(Seen {
                state: ChildState::Starting,
                restarts: 0,
            }),
        }
    }

    pub(super) fn set(&self, state: ChildState) {
        locked(&self.seen).state = state;
    }

    pub(super) fn restarted(&self) {
        locked(&self.seen).restarts += 1;
    }

    pub(super) fn info(&self) -> ChildInfo {
        let Seen { state, restarts } = *locked(&self.seen);
        let children = match &self.what {
            What::Actor(_) => Vec::new(),
            What::Tree(table) => table.entries.iter().map(Entry::info).collect(),
        };
        ChildInfo {
            name: Arc::clone(&self.name),
            kind: self.kind,
            state,
            restarts,
            children,
        }
    }
}

/// How a child is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildState {
    /// It has not been ready yet.
    Starting,
    /// It is ready, and handles messages.
    Running,
    /// It is being restarted. What is sent to it waits in its mailbox.
    Restarting,
    /// It has been told to end.
    Ending,
    /// It was told to pause or to end, and has not heard. The tree goes on without it.
    Stuck,
    /// It has ended, and is not restarted.
    Ended,
}

impl ChildState {
    /// `is_new`: it has not been ready. `ends`: when it goes down, it ends.
    pub(super) fn of(at: At, is_new: bool, ends: bool) -> ChildState {
        match at {
            At::Up => ChildState::Running,
            At::Stuck | At::Lost => ChildState::Stuck,
            At::Over => ChildState::Ended,
            At::Down | At::Rising if is_new => ChildState::Starting,
            At::Doomed | At::Falling if ends => ChildState::Ending,
            At::Down | At::Rising | At::Doomed | At::Falling => ChildState::Restarting,
        }
    }
}

/// What [`Tree::children`](crate::Tree::children) knows of a child.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildInfo {
    /// The child's name.
    pub name: Arc<str>,
    /// The type of its state; `"function"`, `"process"` or `"supervisor"`.
    pub kind: &'static str,
    /// How it is.
    pub state: ChildState,
    /// How often it has been restarted.
    pub restarts: u64,
    /// Its own children, if it is a supervisor.
    pub children: Vec<ChildInfo>,
}
