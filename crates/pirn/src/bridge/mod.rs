//! Bridges between virtual threads and async code.
//!
//! * [`block_on`](mod@block_on): a thread runs a future to its end, and parks while the future is
//!   pending. (The other direction, a task that waits for a thread, is in `thread/join_future.rs`.)
//! * [`async_io`]: a task waits for a descriptor, and reads and writes it through the traits of
//!   async code (need the features `futures-io`, `hyper-io`, `tokio-io`).
//! * [`crossbeam`]: a `select!` waits for an interruption (needs the feature `crossbeam-channel`).

mod async_io;
mod block_on;
#[cfg(feature = "crossbeam-channel")]
mod crossbeam;

pub use async_io::AsyncIo;
pub use block_on::{block_on, block_on_interruptible};
#[cfg(feature = "crossbeam-channel")]
pub use crossbeam::{Interruption, interruption};
