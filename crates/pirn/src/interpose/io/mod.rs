//! Input and output on any descriptor: reading, writing, waiting for readiness.

pub(in crate::interpose) mod aio;
pub(in crate::interpose) mod fcntl;
pub(in crate::interpose) mod flagged;
pub(in crate::interpose) mod formatted;
pub(in crate::interpose) mod fortified;
pub(in crate::interpose) mod mqueue;
#[cfg(any(feature = "futures-io", feature = "hyper-io", feature = "tokio-io"))]
pub(crate) mod once;
pub(in crate::interpose) mod poll;
pub(in crate::interpose) mod rw;
pub(in crate::interpose) mod select;
pub(in crate::interpose) mod stdio;
pub(in crate::interpose) mod stream_locks;
pub(in crate::interpose) mod terminal;
pub(in crate::interpose) mod transfer;
mod tty;
