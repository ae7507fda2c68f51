//! Seeing inside a process: what it tells about itself.

#[path = "../common/mod.rs"]
mod common;

mod door;
#[cfg(feature = "dump")]
mod dump;
mod event_files;
mod events;
mod gdb;
mod lints;
mod perf;
