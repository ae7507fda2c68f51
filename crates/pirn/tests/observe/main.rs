//! Seeing inside a process: what it tells about itself.

#[path = "../common/mod.rs"]
mod common;

mod counters;
mod diagnostics;
mod dropped;
#[cfg(feature = "dump")]
mod dump;
mod event_files;
mod events;
mod gdb;
mod memory;
mod perf;
mod prometheus;
mod server;
mod stuck;
