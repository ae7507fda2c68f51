//! The atomics and cells that the runtime's lock-free protocols are built on.
//!
//! The protocols (`vthread/state.rs`, `vthread/wait_word.rs`, `sched/local_queue.rs`, …) take their
//! atomics from `crate::primitives` only. The package `pirn-model` compiles the very same files a
//! second time against a `primitives` module made of the `loom` crate's types, and explores their
//! interleavings; so the checked code is the code that runs. Here the names stand for `core`'s own
//! types, at no cost.

#[allow(unused_imports)] // the models take all of these
pub(crate) use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicU8, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence,
};

/// `core::cell::UnsafeCell` with the access methods of `loom::cell::UnsafeCell`.
///
/// As with the cell that it wraps, sharing it between threads needs an `unsafe impl Sync` on the
/// type that contains it, and that type must uphold the exclusion.
#[allow(dead_code)] // the models' own data
#[derive(Debug, Default)]
#[repr(transparent)]
pub(crate) struct UnsafeCell<T>(core::cell::UnsafeCell<T>);

#[allow(dead_code)] // the models' own data
impl<T> UnsafeCell<T> {
    /// Wraps `value`.
    pub(crate) const fn new(value: T) -> Self {
        Self(core::cell::UnsafeCell::new(value))
    }

    /// Calls `f` with a pointer for reading; the model treats the call as a shared access.
    pub(crate) fn with<R>(&self, f: impl FnOnce(*const T) -> R) -> R {
        f(self.0.get())
    }

    /// Calls `f` with a pointer for writing; the model treats the call as an exclusive access.
    pub(crate) fn with_mut<R>(&self, f: impl FnOnce(*mut T) -> R) -> R {
        f(self.0.get())
    }
}
