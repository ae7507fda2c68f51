//! Why a supervisor did not start.

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
