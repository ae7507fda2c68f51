//! Actors on virtual threads, whose handlers are plain functions that may block.
//!
//! ```
//! use pirn_actor as actor;
//!
//! let square = actor::function(|n: u64| n * n);
//! assert_eq!(square.ask(7).unwrap(), 49); // parks until the answer is there
//! ```
//!
//! There are two forms. A state with a [`Handler`] for each type of message ([`spawn`],
//! [`Builder::spawn`], [`function`], [`consumer`]) has a thread only while there is work. A
//! [process](process::spawn) is a function with an [inbox](process::Inbox) and a thread of its own,
//! which receives selectively ([`receive!`]).
//!
//! * [`Ref`] and [`Address`] send and ask. If actors would wait for each other in a circle, an ask
//!   fails at once with [`AskError::Deadlock`]. Deadlines travel from asks to the asks of their
//!   handlers.
//! * All references dereference to [`dyn Actor`](Actor), which ends an actor and waits for its end;
//!   [`Monitor`] reports the end, and [`Context::watch`] turns it into a message.
//! * Mailboxes are bounded; [`Overflow`] says what a full one does. [`Restarts`] limits the
//!   restarts after failures; [`lifecycle`] has hooks for the begin and the end of a state.
//!
//! | module | has |
//! |---|---|
//! | [`supervisor`] | supervisors, which restart children that fail |
//! | [`pool`] | several workers behind one mailbox |
//! | [`flow`] | pipelines ([`Address::then`]), batches, limited rates, a thread per message |
//! | [`time`] | messages that are sent later, and again and again |
//! | [`registry`] | names |
//! | [`topic`] | publishers and subscribers |
//! | [`scoped`] | actors whose states and messages may borrow |
//! | [`process`], [`reply`], [`address`], [`error`] | types in the signatures of the above |
//! | [`snapshot`] | a list of all actors |
//!
//! The crate `pirn-flow` has generators, map-reduce, state machines and graphs of steps, which need
//! no actor.

/// Compiles and runs the Rust code of the guide.
#[cfg(doctest)]
#[doc = include_str!("../../../docs/actors.md")]
pub struct Guide;

mod actor;
mod each;
mod edges;
mod ending;
mod envelope;
pub mod error;
pub mod flow;
mod identity;
mod life;
mod mailbox;
mod monitor;
mod poison;
pub mod pool;
mod primitives;
pub mod process;
pub mod registry;
pub mod reply;
pub mod scoped;
pub mod snapshot;
pub mod supervisor;
pub mod time;
pub mod topic;

/// Traits for sending to actors, and addresses that do not keep their actor open.
pub mod address {
    pub use crate::actor::{Ask, Recipient, Target, Tell, WeakAddress, WeakRef};
}

/// Hooks that an actor calls when a state begins and ends.
pub mod lifecycle {
    pub use crate::actor::{Hooks, IntoRecipe};
}

pub use actor::{
    Address, Builder, Context, Function, Handler, Ref, Restarts, consumer, function, spawn,
};
pub use error::{AskError, Exit, SendError};
pub use life::Actor;
pub use mailbox::Overflow;
pub use monitor::Monitor;
pub use scoped::scope;
