//! A pool: several actors with the same messages, each with a state of its own.
//!
//! ```text
//!   senders --> what waits: one bounded queue,  --> worker 1: an actor, its state, its thread
//!               in order, or in order per key   --> worker 2
//!                                               --> ...
//! ```
//!
//! A pool is a queue in front of ordinary actors. These take from it what they are ready for, so
//! all that is said of an actor, of its recipe, restarts, threads and interrupts, holds for a
//! worker as it stands.
//!
//! Rejected: one mailbox whose runner deals messages out. Each would change threads once more, and
//! a message that has been dealt waits for its worker although another one is free.

mod builder;
mod cell;
mod ends;
mod ready;
mod reference;
mod rules;
mod sending;
mod worker;

pub use builder::Pool;
pub use reference::{PoolRef, Workers};
