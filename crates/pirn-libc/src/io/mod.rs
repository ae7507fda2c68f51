//! Input and output on any descriptor: reading, writing, waiting for readiness.

pub(crate) mod aio;
pub(crate) mod copy;
pub(crate) mod fcntl;
pub(crate) mod flagged;
pub(crate) mod formatted;
pub(crate) mod fortified;
pub(crate) mod mqueue;
#[cfg(feature = "async-io")]
pub mod once;
pub(crate) mod pieces;
pub(crate) mod poll;
pub(crate) mod rw;
pub(crate) mod select;
pub(crate) mod stdio;
pub(crate) mod stream_locks;
pub(crate) mod terminal;
pub(crate) mod transfer;
mod tty;
