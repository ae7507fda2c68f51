//! What actors do, as their users see it.

mod common;

mod asks;
mod batches;
mod circles;
mod deadlocks;
mod each;
mod ends;
mod interrupts;
mod lifecycle;
mod mailboxes;
mod pipelines;
mod pool_ends;
mod pool_stress;
mod pool_workers;
mod pools;
mod processes;
mod rates;
mod registry;
mod scopes;
mod seeing;
mod supervise;
mod timeouts;
mod timers;
mod topics;
mod transactions;
mod watches;
