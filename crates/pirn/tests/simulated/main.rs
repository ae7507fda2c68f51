//! What the guide (`docs/structured-concurrency.md`) promises, under seeds: nothing outlives its
//! scope, the first failure is the one that is reported, cancellations and deadlines hold. `cargo
//! pirn sim test` has points at the atomic operations of what is generic in `pirn`.
//!
//! The counts of seeds take some seconds; nights try more (`PIRN_SIM_SEEDS`).

mod common;

mod deadlines;
mod executors;
mod scopes;
mod trees;
