//! Seeing inside: what people and tools learn about a running process.
//!
//! * `dump`: all threads, with their stacks (feature `dump`).
//! * [`door`]: the way in: who may ask, how, and where.
//! * `waits`: what threads wait for, and whether that can come (feature `dump`).
//! * [`debug_table`]: where debuggers and readers of the process's memory find the runtime's data.
//! * [`events`]: what happened lately, as the recorder has it.
//! * [`diagnostics`]: what is probably wrong, and what to do about it.
//! * [`metrics`](mod@metrics): what has been counted, and how much there is of everything.

pub(crate) mod debug_table;
pub(crate) mod diagnostics;
pub(crate) mod door;
#[cfg(feature = "dump")]
pub(crate) mod dump;
pub(crate) mod events;
pub mod metrics;
#[cfg(feature = "dump")]
pub(crate) mod waits;

pub use metrics::metrics;
