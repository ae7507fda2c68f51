//! Input and output on any descriptor: reading, writing, waiting for readiness.

pub(crate) mod copy;
pub(crate) mod fcntl;
pub(crate) mod mqueue;
#[cfg(feature = "async-io")]
pub mod once;
pub(crate) mod pieces;
pub(crate) mod poll;
pub(crate) mod rw;
pub(crate) mod select;
pub(crate) mod simulated_sockets;
pub(crate) mod stdio;
pub(crate) mod transfer;
pub(crate) mod tty;
