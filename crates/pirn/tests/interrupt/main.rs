//! Interruption, for every kind of wait.

#[path = "../common/mod.rs"]
mod common;

mod fixture;
mod io;
mod listeners;
mod races;
mod waits;
