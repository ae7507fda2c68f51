//! What the guide (`docs/actors.md`) promises, under seeds: in each run the threads go on in
//! another order, pause, and end each other's actors. `cargo pirn sim test` has points at the
//! atomic operations of `pirn-actor` as well.
//!
//! The counts of seeds take some seconds; nights try more (`PIRN_SIM_SEEDS`).

mod common;

mod asks;
mod flows;
mod mailboxes;
mod names;
mod pools;
mod supervisors;
mod timers;
