//! Interruption, for every kind of wait.

mod fixture;
mod io;
mod listeners;
mod races;
mod waits;
