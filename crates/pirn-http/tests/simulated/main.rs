//! What the guide (`docs/http.md`) promises, under seeds and on a network that fails: links that
//! are slow and lossy, resets, crashes, pauses. `cargo pirn sim test` has points at the atomic
//! operations of `pirn-http` as well.
//!
//! The counts of seeds take some seconds; nights try more (`PIRN_SIM_SEEDS`).

mod client;

mod answers;
mod ends;
mod limits;
