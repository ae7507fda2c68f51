//! Serving actors to other nodes.

mod actor;
mod answering;
mod holding;
mod lease;
mod registration;
mod routes;
mod task;

pub use actor::{Answers, Served};
pub use holding::Holding;
pub use registration::{Registration, Serving};

pub(crate) use routes::{WATCH, Whereabouts};
pub(crate) use task::Task;
