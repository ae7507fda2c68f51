//! Stress: many random operations at once.

#[path = "../common/mod.rs"]
mod common;

mod preemption;
mod scopes;
mod threads;
