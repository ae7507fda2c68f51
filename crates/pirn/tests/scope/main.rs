//! Structured concurrency: scopes, their subtasks, joiners, deadlines and the tree of them.

#[path = "../common/mod.rs"]
mod common;

mod borrows;
mod cancel;
mod custom_joiners;
mod deadlines;
mod drops;
mod errors;
mod extents;
mod failure_stories;
mod faults;
mod fixture;
mod interrupt;
mod join;
mod joiners;
mod leave;
mod limits;
mod nested;
mod tree;
mod values;
