//! What actors do, as their users see it.

mod common;

mod asks;
mod batches;
mod deadlocks;
mod doors;
mod ends;
mod generators;
mod mailboxes;
mod pipelines;
mod pool_ends;
mod pool_stress;
mod pool_workers;
mod pools;
mod prefetches;
mod processes;
mod progress;
mod rates;
mod reductions;
mod scopes;
mod supervise;
mod timeouts;
mod transactions;
mod watches;
