//! Errors of names.

use crate::error::Refusal;
use core::fmt;
use std::error::Error;
use std::sync::Arc;

/// Another actor has the name.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Taken {
    /// The name.
    pub name: Arc<str>,
}

impl fmt::Display for Taken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "another actor has the name {:?}", self.name)
    }
}

impl Error for Taken {}

/// Why a name does not lead to an actor.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookupError {
    /// No actor has this name.
    Unknown(Arc<str>),
    /// The actor with this name has another type, and accepts no messages of this type.
    WrongType(Arc<str>),
}

impl fmt::Display for LookupError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LookupError::Unknown(name) => write!(f, "nobody has the name {name:?}"),
            LookupError::WrongType(name) => write!(f, "{name:?} is another type of actor"),
        }
    }
}

impl Error for LookupError {}

impl From<LookupError> for Refusal {
    fn from(error: LookupError) -> Refusal {
        match error {
            LookupError::Unknown(_) => Refusal::Unknown,
            LookupError::WrongType(_) => Refusal::WrongType,
        }
    }
}
