//! Much at once and at random.

#[path = "../common/mod.rs"]
mod common;

mod scopes;
mod threads;
