//! An actor of the usual form: a state, and a handler that is called for each message. It has a
//! thread only while it has work.

mod address;
mod builder;
mod cell;
mod context;
mod ending;
mod handle;
mod overtime;
mod passing;
mod recipe;
mod reference;
mod runner;
mod sending;
mod threads;
mod transaction;
mod wait;
mod weak;

pub use address::{Address, Ask, Tell};
pub use builder::{Builder, consumer, function, spawn};
pub use context::Context;
pub use handle::{Function, Handle};
pub use recipe::Restarts;
pub use reference::{Ref, WeakRef};
pub use weak::{Recipient, Target, WeakAddress};

pub(crate) use address::Receive;
pub(crate) use builder::CAPACITY;
pub(crate) use cell::{Body, Cell, Change, OnUndelivered, Options, Overseer};
pub(crate) use ending::{Ending, Mortal, Watching};
pub(crate) use handle::{Asked, Told};
pub(crate) use passing::{Onward, Passed};
pub(crate) use recipe::Recipe;
pub(crate) use runner::{RETRY, exit, undelivered};
pub(crate) use sending::Patience;
pub(crate) use threads::Threads;
pub(crate) use wait::ForRoom;
pub(crate) use weak::{Mode, Sends};

/// What is in the mailbox of an actor with the state `S`.
pub(crate) type Item<S> = crate::envelope::Envelope<S, Context<S>>;
