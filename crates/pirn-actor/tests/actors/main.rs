//! What actors do, as their users see it.

mod common;

mod asks;
mod deadlocks;
mod doors;
mod ends;
mod mailboxes;
mod pool_ends;
mod pool_stress;
mod pool_workers;
mod pools;
mod processes;
mod scopes;
mod supervise;
mod timeouts;
mod watches;
