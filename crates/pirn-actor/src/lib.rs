//! Actors on virtual threads, whose handlers are plain functions that may block.

pub(crate) mod actor;
mod deadline;
mod edges;
mod envelope;
mod error;
mod identity;
mod mailbox;
mod monitor;
mod poison;
pub(crate) mod process;
mod reply;
mod snapshot;
mod time;

pub use actor::{
    Address, Ask, Builder, Context, Function, Handle, Ref, Restarts, Tell, WeakRef, consumer,
    function, spawn,
};
pub use deadline::{deadline, with_deadline};
pub use error::{AskError, Cycle, Exit, Failure, Refusal, SendError};
pub use mailbox::Overflow;
pub use monitor::Monitor;
#[doc(hidden)]
pub use process::Search;
pub use process::{Inbox, Process, RecvError, process};
pub use reply::{Reply, ReplyFuture, ReplyTo, reply};
pub use snapshot::{ActorInfo, snapshot};
pub use time::timers::TimerHandle;
