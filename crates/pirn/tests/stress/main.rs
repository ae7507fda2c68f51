//! Stress: many random operations at once.

#[path = "../common/mod.rs"]
mod common;

mod scopes;
mod threads;
