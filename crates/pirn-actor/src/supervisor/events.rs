//! The events that a supervisor handles, and those that it reports.

use crate::actor::Change;
use crate::error::{Exit, Failure};
use std::sync::Arc;
use std::sync::mpsc::Sender;

/// The events of a supervisor's thread. They name children by their indices.
#[derive(Debug)]
pub(super) enum Event {
    Changed(usize, Change),
    Ended(usize, Exit),
    /// From the supervisor above: pause all children.
    Hold,
    /// From the supervisor above: restart all children.
    GoOn,
    /// End the tree.
    Stop,
}

/// A child's handle for reports to its supervisor.
#[derive(Clone)]
pub(crate) struct Reporter {
    pub(super) child: usize,
    /// After a failure the child is held until the supervisor restarts or ends it.
    pub(crate) holds: bool,
    pub(super) events: Sender<Event>,
    /// What the child puts before the names of its own children: the names of the supervisors above
    /// it, and its own.
    pub(super) path: String,
    pub(super) hook: Option<Hook>,
}

impl Reporter {
    pub(crate) fn changed(&self, change: Change) {
        self.tell(Event::Changed(self.child, change));
    }

    pub(super) fn ended(&self, exit: Exit) {
        self.tell(Event::Ended(self.child, exit));
    }

    /// Sends an event. If that fails, the supervisor has ended.
    fn tell(&self, event: Event) {
        let _ = self.events.send(event);
    }
}

/// An event in a tree of supervisors, for logs and metrics.
///
/// A child of a nested supervisor is called `supervisor/child`.
///
/// # Examples
/// See [`Supervisor::on_event`](crate::supervisor::Supervisor::on_event).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TreeEvent {
    /// A child has failed: it panicked, its recipe failed, a message took too long, or it has ended
    /// although it should not.
    #[non_exhaustive]
    Failed {
        /// The child's name.
        child: Arc<str>,
        /// Why.
        failure: Failure,
    },
    /// A child is ready again, after a failure of its own or of another child.
    #[non_exhaustive]
    Restarted {
        /// The child's name.
        child: Arc<str>,
    },
    /// A child has not paused or ended in time. The tree continues without it.
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

/// Called with each event of a tree.
pub(super) type Hook = Arc<dyn Fn(&TreeEvent) + Send + Sync>;
