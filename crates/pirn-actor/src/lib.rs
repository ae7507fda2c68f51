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
//! * [`Ref`] and [`Address`] send and ask. An ask that actors would wait for in a circle fails at
//!   once, with [`AskError::Deadlock`]. Deadlines travel from asks to the asks of their handlers.
//! * All references dereference to [`dyn Actor`](Actor), which ends an actor and waits for its end;
//!   [`Monitor`] tells of that, and [`Context::watch`] has it come as a message.
//! * Mailboxes are bounded; [`Overflow`] says what a full one does. [`Restarts`] has an actor begin
//!   anew after a failure; [`lifecycle`] is what its states do when they begin and end.
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
//! | [`process`], [`reply`], [`address`], [`error`] | what the above have in their signatures |
//! | [`snapshot`] | all actors that there are |
//!
//! The crate `pirn-flow` has what needs no actor: generators, map-reduce, state machines, graphs of
//! steps.

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

/// What sends to actors: traits, and addresses that do not keep their actor open.
pub mod address {
    pub use crate::actor::{Ask, Recipient, Target, Tell, WeakAddress, WeakRef};
}

/// What a state does when its actor begins and ends.
pub mod lifecycle {
    pub use crate::actor::{Hooked, IntoRecipe, Lifecycle, hooked};
}

pub use actor::{
    Address, Builder, Context, Function, Handler, Ref, Restarts, consumer, function, spawn,
};
pub use error::{AskError, Exit, SendError};
pub use life::Actor;
pub use mailbox::Overflow;
pub use monitor::Monitor;
pub use scoped::scope;
