//! What can go wrong with a node.

use core::fmt;
use std::error::Error;
use std::sync::Arc;

/// Why a node cannot do what it was told.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeError {
    /// The server cannot be reached, or does not let this node in.
    Connect(Arc<str>),
    /// The name of a system has letters, digits, `-` and `_` only.
    System(Arc<str>),
    /// Another actor of the system has the name.
    Taken {
        /// The name.
        name: Arc<str>,
        /// The name of the node that has it.
        by: Arc<str>,
    },
    /// The server did not do what was asked: for instance because JetStream is not enabled, or none
    /// of a cluster's servers answers in time.
    Unavailable(Arc<str>),
    /// The message is larger than the server takes.
    TooLarge {
        /// The size of the message in bytes.
        size: usize,
        /// What the server takes, in bytes.
        limit: usize,
    },
    /// The node is closed.
    Closed,
}

impl NodeError {
    pub(crate) fn unavailable(why: impl fmt::Display) -> NodeError {
        NodeError::Unavailable(why.to_string().into())
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NodeError::Connect(why) => write!(f, "no connection to NATS: {why}"),
            NodeError::System(name) => {
                write!(
                    f,
                    "{name:?} cannot name a system: use letters, digits, - and _ only"
                )
            }
            NodeError::Taken { name, by } => write!(f, "the node {by} already has the name {name}"),
            NodeError::Unavailable(why) => write!(f, "NATS did not do what was asked: {why}"),
            NodeError::TooLarge { size, limit } => {
                write!(f, "the message has {size} bytes; the server takes {limit}")
            }
            NodeError::Closed => f.write_str("the node is closed"),
        }
    }
}

impl Error for NodeError {}
