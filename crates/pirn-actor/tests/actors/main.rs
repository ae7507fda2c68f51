//! What actors do, as their users see it.

mod common;

mod asks;
mod deadlocks;
mod doors;
mod ends;
mod mailboxes;
mod pool_stress;
mod pools;
mod processes;
