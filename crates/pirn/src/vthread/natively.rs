//! Threads that must be platform threads, whatever `pthread_create` makes for the program.
//!
//! The runtime's own threads (carriers, the monitor, the pool, the reporter, …) carry virtual
//! threads or serve them. They are made through `std`, and so by the very `pthread_create` that may
//! make virtual threads of those of the program: their makers say so here.

use core::cell::Cell;
use core::marker::PhantomData;

thread_local! {
    /// The number of [`Natively`]s of the thread.
    static NATIVELY: Cell<u32> = const { Cell::new(0) };
}

/// While this lives, the threads that the calling thread makes are platform threads.
#[must_use = "it has no effect once it is dropped"]
pub(crate) struct Natively(PhantomData<*const ()>);

impl Natively {
    pub(crate) fn new() -> Natively {
        NATIVELY.set(NATIVELY.get() + 1);
        Natively(PhantomData)
    }
}

impl Drop for Natively {
    fn drop(&mut self) {
        NATIVELY.set(NATIVELY.get() - 1);
    }
}

/// Calls `f`, which makes platform threads.
pub(crate) fn natively<R>(f: impl FnOnce() -> R) -> R {
    let _natively = Natively::new();
    f()
}

/// Returns whether the calling thread makes a platform thread.
pub(crate) fn is_asked_for() -> bool {
    NATIVELY.get() > 0
}
