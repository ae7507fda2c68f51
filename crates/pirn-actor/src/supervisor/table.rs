//! What a supervisor's thread and its handle share: who the children are, and how they are.

use super::events::Event;
use super::plan::Stage;
use crate::identity::Identity;
use crate::life::Load;
use crate::life::{Actor, Life};
use crate::mailbox::Phase;
use crate::poison::locked;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, Weak};

/// A supervisor, for those who look something up.
pub(super) struct Table {
    pub(super) life: Life,
    pub(super) entries: Vec<Entry>,
    /// What the supervisor's thread hears.
    pub(super) events: Sender<Event>,
    this: Weak<Table>,
    /// The number of events that the supervisor has heard.
    heard: AtomicU64,
}

impl Table {
    pub(super) fn new(name: Arc<str>, entries: Vec<Entry>, events: Sender<Event>) -> Arc<Table> {
        Arc::new_cyclic(|this| Table {
            life: Life::new(Identity::new(Some(name))),
            entries,
            events,
            this: Weak::clone(this),
            heard: AtomicU64::new(0),
        })
    }

    pub(super) fn heard(&self) {
        // Relaxed: for people.
        self.heard.fetch_add(1, Ordering::Relaxed);
    }
}

impl Actor for Table {
    fn life(&self) -> &Life {
        &self.life
    }

    fn this(&self) -> Arc<dyn Actor> {
        self.this.upgrade().expect("the caller has it")
    }

    /// The tree ends as a stopped one: its children have a grace of their own.
    fn end(&self, _: Phase) {
        // A supervisor that does not hear any more has ended.
        let _ = self.events.send(Event::Stop);
    }

    fn kind(&self) -> &'static str {
        "supervisor"
    }

    fn load(&self) -> Load {
        Load {
            // Relaxed: for people.
            begun: self.heard.load(Ordering::Relaxed),
            waiting: 0,
            senders: 0,
        }
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
    /// The [`Slot`](super::node::Slot) of a `Ref`, a `Process` or an `Address`.
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
    pub(super) fn of(stage: Stage, is_new: bool, ends: bool) -> ChildState {
        match stage {
            Stage::Running => ChildState::Running,
            Stage::Stuck | Stage::Abandoned => ChildState::Stuck,
            Stage::Ended => ChildState::Ended,
            Stage::Down | Stage::Starting if is_new => ChildState::Starting,
            Stage::ToStop | Stage::Stopping if ends => ChildState::Ending,
            Stage::Down | Stage::Starting | Stage::ToStop | Stage::Stopping => {
                ChildState::Restarting
            }
        }
    }
}

/// What [`Tree::children`](crate::supervisor::Tree::children) knows of a child.
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
