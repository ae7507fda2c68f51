//! What actors do, as their users see it.

mod common;

mod asks;
mod deadlocks;
mod ends;
mod machines;
mod mailboxes;
mod processes;
mod registry;
mod timers;
mod topics;
mod watching;
