//! Serving actors to other nodes.

mod actor;
mod answering;
mod lease;
mod registration;
mod routes;
mod task;

pub use actor::{Answers, Served};
pub use registration::{Registration, Serving};

pub(crate) use routes::{WATCH, Whereabouts};
pub(crate) use task::Task;
