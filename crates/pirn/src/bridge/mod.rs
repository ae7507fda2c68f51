//! Bridges between virtual threads and async code.
//!
//! * [`block_on`](mod@block_on): a thread runs a future to its end, and parks while that is
//!   pending.
//! * [`join_future`]: a future waits for a virtual thread's end.
//! * [`crossbeam`]: a `select!` waits for an interruption (needs the feature `crossbeam-channel`).

pub(crate) mod block_on;
#[cfg(feature = "crossbeam-channel")]
mod crossbeam;
pub(crate) mod join_future;

pub use block_on::{block_on, block_on_interruptible};
#[cfg(feature = "crossbeam-channel")]
pub use crossbeam::{Interruption, interruption};
pub use join_future::JoinFuture;
