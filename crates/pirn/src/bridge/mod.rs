//! Bridges between virtual threads and async code.
//!
//! * [`block_on`](mod@block_on): a thread runs a future to its end, and parks while the future is
//!   pending. (The other direction, a task that waits for a thread, is in `thread/join_future.rs`.)
//! * [`crossbeam`]: a `select!` waits for an interruption (needs the feature `crossbeam-channel`).

mod block_on;
#[cfg(feature = "crossbeam-channel")]
mod crossbeam;

pub use block_on::{block_on, block_on_interruptible};
#[cfg(feature = "crossbeam-channel")]
pub use crossbeam::{Interruption, interruption};
