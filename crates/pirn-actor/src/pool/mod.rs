//! A pool: several actors with the same messages, each with a state of its own.
//!
//! ```text
//!   senders --> waiting messages: one bounded queue, --> worker 1: an actor, its state, its thread
//!               in order, or in order per key         --> worker 2
//!                                                     --> ...
//! ```
//!
//! A pool is a queue in front of ordinary actors. These take a message from it when they are ready,
//! so a worker has the recipe, restarts, threads and interrupts of any actor.
//!
//! Rejected: one mailbox whose runner deals messages out. Each message would switch threads once
//! more, and a message that was dealt out would wait for its worker while another one is free.

mod builder;
mod cell;
mod ends;
mod ready;
mod reference;
mod rules;
mod worker;

pub use builder::Pool;
pub use reference::{PoolRef, Workers};
