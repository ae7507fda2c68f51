//! Actors on virtual threads, whose handlers are plain functions that may block.

pub(crate) mod actor;
mod edges;
mod envelope;
mod error;
mod identity;
mod machine;
mod mailbox;
mod monitor;
mod poison;
pub(crate) mod process;
mod registry;
mod reply;
mod snapshot;
mod time;
mod topic;

pub use actor::{
    Address, Ask, Builder, Context, Function, Handle, Recipient, Ref, Restarts, Target, Tell,
    WeakAddress, WeakRef, consumer, function, spawn,
};
pub use error::{AskError, Cycle, Exit, Failure, Refusal, SendError};
pub use machine::{
    Change as StateChange, EventError, Machine, Rules as MachineRules, Template as MachineTemplate,
    TemplateError,
};
pub use mailbox::Overflow;
pub use monitor::Monitor;
#[doc(hidden)]
pub use process::Search;
pub use process::{Inbox, Process, RecvError, process};
pub use registry::{LookupError, Nameable, Named, Registry, Taken, Undelivered, registry};
pub use reply::{Reply, ReplyFuture, ReplyTo};
pub use snapshot::{ActorInfo, snapshot};
pub use time::timers::TimerHandle;
pub use time::{Period, every, every_after, send_after, send_at};
pub use topic::{
    Bus, Change, Composite, MapChange, SubscribeError, Subscription, Topic, UnknownPart, Watched,
    WatchedMap,
};
