//! A child, and what its end means.

use super::node::Node;
use crate::error::Exit;
use core::time::Duration;
use std::sync::Arc;
use std::time::Instant;

/// Whether a child that has ended is begun anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Permanent,
    Transient,
    Temporary,
}

impl Kind {
    pub(super) fn restarts_after(self, exit: &Exit) -> bool {
        match self {
            Kind::Permanent => true,
            Kind::Transient => !matches!(exit, Exit::Closed | Exit::Stopped),
            Kind::Temporary => false,
        }
    }
}

/// A child, for its supervisor's thread.
pub(super) struct Child {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) node: Box<dyn Node>,
    /// The time that it has to go down, if that is another one than the supervisor's.
    pub(super) grace: Option<Duration>,
    /// There is an actor: it was begun, and has not ended.
    pub(super) is_begun: bool,
    /// It has never been ready.
    pub(super) is_new: bool,
    /// When it falls: how long it may take, and whether it has been killed.
    pub(super) until: Option<Instant>,
    pub(super) is_killed: bool,
}

impl Child {
    pub(super) fn new(name: Arc<str>, node: Box<dyn Node>) -> Child {
        Child {
            name,
            kind: Kind::Permanent,
            node,
            grace: None,
            is_begun: false,
            is_new: true,
            until: None,
            is_killed: false,
        }
    }
}
