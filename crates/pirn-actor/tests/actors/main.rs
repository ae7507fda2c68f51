//! What actors do, as their users see it.

mod common;

mod asks;
mod batches;
mod deadlocks;
mod ends;
mod generators;
mod mailboxes;
mod pipelines;
mod prefetches;
mod processes;
mod progress;
mod rates;
mod reductions;
mod transactions;
