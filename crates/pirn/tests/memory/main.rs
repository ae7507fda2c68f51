//! Memory is given back, and as it was got: this binary's allocator checks each block and counts.
//!
//! A binary of its own because of that allocator. Each test has a process of its own, because the
//! counts are those of the whole process.

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
