//! The part that a supervisor's runner and its handle share: its children and their states.

use super::events::Event;
use super::plan::Stage;
use crate::identity::Identity;
use crate::life::{Actor, Life, Load};
use crate::mailbox::Phase;
use crate::poison::locked;
use core::any::Any;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, Weak};

/// A supervisor, as its handle and look-ups see it.
pub(super) struct Table {
    pub(super) life: Life,
    pub(super) entries: Vec<Entry>,
    /// The events for the supervisor's runner.
    pub(super) events: Sender<Event>,
    this: Weak<Table>,
    /// The number of events that the runner has handled.
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

    /// Sends the runner an event. If that fails, the supervisor has ended.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    pub(super) fn heard(&self) {
        // Relaxed: a number for snapshots.
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

    /// Stops the tree in each phase: its children have their own grace.
    fn end(&self, _: Phase) {
        self.tell(Event::Stop);
    }

    fn hold(&self) {
        self.tell(Event::Hold);
    }

    fn go_on(&self) {
        self.tell(Event::GoOn);
    }

    fn kind(&self) -> &'static str {
        "supervisor"
    }

    fn load(&self) -> Load {
        Load {
            // Relaxed: a number for snapshots.
            begun: self.heard.load(Ordering::Relaxed),
            ..Load::default()
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

/// The reference to a child.
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

/// The state of a child.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ChildState {
    /// It was not ready yet.
    Starting,
    /// It is ready, and handles messages.
    Running,
    /// It is being restarted. Its messages wait in its mailbox.
    Restarting,
    /// It was told to end.
    Ending,
    /// It did not pause or end in time. The tree continues without it.
    Stuck,
    /// It has ended, and is not restarted.
    Ended,
}

impl ChildState {
    /// Returns the state of a child in this stage. `is_new`: it was never ready. `ends`: it ends
    /// when it is taken down.
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

/// The data of a child from [`Tree::children`](crate::supervisor::Tree::children).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ChildInfo {
    /// The child's name.
    pub name: Arc<str>,
    /// The type of its state; `"function"`, `"process"` or `"supervisor"`.
    pub kind: &'static str,
    /// Its state.
    pub state: ChildState,
    /// How often it was restarted.
    pub restarts: u64,
    /// Its own children, if it is a supervisor.
    pub children: Vec<ChildInfo>,
}
