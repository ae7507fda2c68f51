//! The runtime of [`pirn`](https://docs.rs/pirn), which is its only user: nothing here is stable.

// The crates above use it, not programs.
#![allow(
    missing_docs,
    clippy::len_without_is_empty,
    clippy::new_without_default,
    rustdoc::private_intra_doc_links,
    rustdoc::redundant_explicit_links
)]

pub mod arch;
pub mod blocking;
pub mod carriers;
pub mod continuation;
pub mod environment;
pub mod glibc;
pub mod lock;
pub mod no_suspend;
pub mod own_vec;
pub mod panic;
pub mod poison;
pub mod primitives;
pub mod process;
pub mod reactor;
pub mod recorder;
pub mod sanitizer;
pub mod sched;
pub mod stack;
pub mod sys;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod time;
pub mod vthread;
