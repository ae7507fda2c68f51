//! What a supervisor hears, and what it tells.

use crate::actor::{Change, Overseer};
use crate::error::{Exit, Failure};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// What a supervisor's thread hears, one after the other. Children are called by their statuses.
#[derive(Debug)]
pub(super) enum Event {
    Changed(usize, Change),
    Ended(usize, Exit),
    /// From the supervisor above: all children are to pause.
    Hold,
    /// From the supervisor above: begin anew.
    GoOn,
    /// The tree is to end.
    Stop,
}

/// What a child reports by.
#[derive(Clone)]
pub(super) struct Reporter {
    pub(super) child: usize,
    /// A failure of the child is not its end.
    pub(super) holds: bool,
    pub(super) events: Sender<Event>,
    /// The child's name, after those of the supervisors that it is under.
    pub(super) path: Arc<str>,
    pub(super) hook: Option<Hook>,
}

impl Reporter {
    pub(super) fn changed(&self, change: Change) {
        self.tell(Event::Changed(self.child, change));
    }

    pub(super) fn ended(&self, exit: Exit) {
        self.tell(Event::Ended(self.child, exit));
    }

    /// A supervisor that does not hear any more has ended.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }

    /// Has an actor report here.
    pub(super) fn overseer(&self) -> Overseer {
        let reporter = self.clone();
        Overseer {
            tell: Arc::new(move |change| reporter.changed(change)),
            holds: self.holds,
        }
    }
}

/// Something that has happened in a tree of supervisors: for logs and metrics.
///
/// The children of a supervisor that is a child itself are called `supervisor/child`.
///
/// # Examples
/// See [`Supervisor::on_event`](crate::supervisor::Supervisor::on_event).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeEvent {
    /// A child has failed: it panicked, its recipe failed, a message took too long, or it has ended
    /// where it should not.
    #[non_exhaustive]
    Failed {
        /// The child's name.
        child: Arc<str>,
        /// Why.
        failure: Failure,
    },
    /// A child is ready again, after a failure of its own or of another one.
    #[non_exhaustive]
    Restarted {
        /// The child's name.
        child: Arc<str>,
    },
    /// A child does not hear in time that it is to pause or to end. The tree goes on without it.
    #[non_exhaustive]
    Stuck {
        /// The child's name.
        child: Arc<str>,
    },
    /// A child has ended, and is not restarted.
    #[non_exhaustive]
    Ended {
        /// The child's name.
        child: Arc<str>,
        /// How it has ended.
        exit: Exit,
    },
}

/// Is told what happens in a tree.
pub(super) type Hook = Arc<dyn Fn(&TreeEvent) + Send + Sync>;
