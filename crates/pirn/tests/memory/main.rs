//! Memory is freed, with the layout of its allocation: this binary's allocator checks and counts
//! each block.
//!
//! This is a separate binary because of that allocator. Each test has its own process, because the
//! allocator counts for the whole process.

#[path = "../common/mod.rs"]
mod common;

mod checked;
mod ended_tasks;
mod preloaded;

// With `--cfg pirn_checked_alloc` every binary has one, from `common`.
#[cfg(not(pirn_checked_alloc))]
#[global_allocator]
static ALLOCATOR: crate::common::checked_alloc::CheckedAlloc =
    crate::common::checked_alloc::CheckedAlloc;
