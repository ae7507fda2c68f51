//! The atomics of the lock-free protocols. `pirn-model` compiles the files that use them a second
//! time, with the types of the `loom` crate instead.

pub(crate) use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
