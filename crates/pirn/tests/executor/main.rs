//! Executors: one thread per task.

#[path = "../common/mod.rs"]
mod common;

mod close;
mod fixture;
mod invoke;
mod map;
mod races;
mod tasks;
