//! Actors on virtual threads, whose handlers are plain functions that may block.
//!
//! ```
//! use pirn_actor as actor;
//!
//! let square = actor::function(|n: u64| n * n);
//! assert_eq!(square.ask(7).unwrap(), 49); // parks until the answer is there
//! ```
//!
//! There are two forms. A state with a handler for each type of message ([`Handle`], [`spawn`],
//! [`Builder::spawn`], [`function`], [`consumer`]) has a thread only while there is work. A
//! [`process`](process()) is a function with an [`Inbox`] and a thread of its own, which receives
//! selectively ([`receive!`]).
//!
//! * [`Ref`] and [`Address`] send and ask. An ask that actors would wait for in a circle fails at
//!   once, with [`AskError::Deadlock`]. Deadlines travel from asks to the asks of their handlers.
//! * Mailboxes are bounded; [`Overflow`] says what a full one does.
//! * [`close`](Ref::close), [`stop`](Ref::stop) and [`kill`](Ref::kill) end an actor; [`Monitor`]
//!   tells of it; [`Restarts`] has it begin anew after a failure.
//! * A [`Supervisor`] restarts children that fail. A [`Pool`] has several workers behind one
//!   mailbox; [`each`] starts a thread per message; [`inline`] has none.
//! * [`Address::then`] makes pipelines. [`generate`], [`batch`], [`rate_limited`], [`map_reduce`]
//!   and [`prefetch`] are for streams of work.
//! * [`send_after`] and [`every`] send later; a [`Registry`] knows names; a [`Topic`] has
//!   subscribers; a [`Watched`] value tells of its changes; a [`Machine`] has states and events.
//! * A [`Graph`] has steps, some of them at once, for what agents and workflows do.
//! * In a [`scope()`], states and messages may borrow.
//! * [`snapshot()`] shows all actors.

/// Compiles and runs the Rust code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/actors.md")]
pub struct Guide;

pub(crate) mod actor;
mod door;
mod edges;
mod envelope;
mod error;
mod flow;
mod graph;
mod identity;
mod machine;
mod mailbox;
mod monitor;
mod poison;
mod pool;
mod primitives;
pub(crate) mod process;
mod registry;
mod reply;
mod scope;
mod snapshot;
mod supervise;
mod time;
mod topic;

pub use actor::{
    Address, Ask, Builder, Context, Function, Handle, Recipient, Ref, Restarts, Target, Tell,
    WeakAddress, WeakRef, consumer, function, spawn,
};
pub use door::{each, inline};
pub use error::{AskError, Cycle, Exit, Failure, Refusal, SendError};
pub use flow::{
    Generator, Out, Prefetch, Prefetched, Progress, Report, Reports, ScopedGenerator, TimedOut,
    batch, batch_by, generate, generate_parallel, generate_scoped, map_reduce, prefetch,
    rate_limited, try_map_reduce,
};
pub use graph::{Graph, GraphError, StepError, Template as GraphTemplate};
pub use machine::{
    Change as StateChange, EventError, Machine, Rules as MachineRules, Template as MachineTemplate,
    TemplateError,
};
pub use mailbox::Overflow;
pub use monitor::Monitor;
#[doc(no_inline)]
pub use pirn::scope::{deadline, with_deadline};
pub use pool::{Pool, PoolRef, Workers};
#[doc(hidden)]
pub use process::Search;
pub use process::{Inbox, Process, RecvError, Watch, process};
pub use registry::{LookupError, Nameable, Named, Registry, Taken, Undelivered, registry};
pub use reply::{Reply, ReplyFuture, ReplyTo, reply};
pub use scope::{Scope, ScopedRef, With, scope};
pub use snapshot::{ActorInfo, snapshot};
pub use supervise::{
    ChildInfo, ChildState, NoChild, Siblings, StartError, Supervisor, Tree, TreeEvent,
};
pub use time::timers::TimerHandle;
pub use time::{Period, every, every_after, send_after, send_at};
pub use topic::{
    Bus, Change, Composite, MapChange, SubscribeError, Subscription, Topic, UnknownPart, Watched,
    WatchedMap,
};
