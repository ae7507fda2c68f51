//! What actors do, as their users see it.

mod common;

mod asks;
mod batches;
mod circles;
mod deadlocks;
mod doors;
mod ends;
mod generators;
mod graphs;
mod interrupts;
mod machines;
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
mod registry;
mod scopes;
mod seeing;
mod supervise;
mod timeouts;
mod timers;
mod topics;
mod transactions;
mod watches;
mod watching;
