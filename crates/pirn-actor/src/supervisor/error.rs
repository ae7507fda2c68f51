//! Why a supervisor did not start, or did not find a child.

use crate::error::Failure;
use core::fmt;
use std::error::Error;
use std::io;
use std::sync::Arc;

/// Why a supervisor did not start.
#[derive(Debug)]
#[non_exhaustive]
pub enum StartError {
    /// This child did not start. The others have ended.
    #[non_exhaustive]
    Failed {
        /// The child's name.
        child: Arc<str>,
        /// Why it did not start.
        failure: Failure,
    },
    /// Two children have this name.
    #[non_exhaustive]
    SameName {
        /// The name.
        name: Arc<str>,
    },
    /// No thread could be started for the supervisor.
    Thread(io::Error),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Failed { child, failure } => write!(f, "{child} did not start: {failure}"),
            StartError::SameName { name } => write!(f, "two children have the name {name}"),
            StartError::Thread(error) => write!(f, "no thread for the supervisor: {error}"),
        }
    }
}

impl Error for StartError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        match self {
            StartError::Thread(error) => Some(error),
            StartError::Failed { .. } | StartError::SameName { .. } => None,
        }
    }
}

/// Why a look-up found no child.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NoChild {
    /// The supervisor has no child with this name.
    #[non_exhaustive]
    Unknown {
        /// The name that was looked up.
        name: Arc<str>,
    },
    /// The child has another type.
    #[non_exhaustive]
    OtherType {
        /// The name that was looked up.
        name: Arc<str>,
        /// The type of its state; `"function"`, `"process"` or `"supervisor"`.
        kind: &'static str,
    },
}

impl NoChild {
    pub(super) fn unknown(name: &str) -> NoChild {
        NoChild::Unknown { name: name.into() }
    }

    pub(super) fn other(name: &str, kind: &'static str) -> NoChild {
        let name = name.into();
        NoChild::OtherType { name, kind }
    }
}

impl fmt::Display for NoChild {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NoChild::Unknown { name } => write!(f, "the supervisor has no child {name}"),
            NoChild::OtherType { name, kind } => write!(f, "{name} is of another type: {kind}"),
        }
    }
}

impl Error for NoChild {}
