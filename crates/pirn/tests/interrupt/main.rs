//! Interruption of whatever a thread waits for.

#[path = "../common/mod.rs"]
mod common;

mod fixture;
mod io;
mod listeners;
mod races;
mod waits;
