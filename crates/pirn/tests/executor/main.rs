//! Executors: one thread per task.

#[path = "../common/mod.rs"]
mod common;

mod close;
mod fixture;
mod map;
mod races;
mod tasks;
