//! Threads that must be platform threads, whatever `pthread_create` makes for the program.
//!
//! The runtime's own threads ([`helper`](super::helper): carriers, the monitor, the pool, …) carry
//! virtual threads or serve them. They are made by the very `pthread_create` that may make virtual
//! threads of those of the program: their makers say so here.
//!
//! These helpers begin with all signals blocked that others can send. The kernel gives a signal of
//! the process to any OS thread that does not block it, also to one that has not begun.

use core::cell::Cell;
use core::marker::PhantomData;

thread_local! {
    /// The sum of the numbers of the thread's [`Natively`]s.
    static NATIVELY: Cell<u32> = const { Cell::new(0) };
}

const HELPER: u32 = 1 << 16;

/// While this lives, the threads that the calling thread makes are platform threads.
#[must_use = "it has no effect once it is dropped"]
pub struct Natively(u32, PhantomData<*const ()>);

impl Natively {
    fn new(number: u32) -> Natively {
        NATIVELY.set(NATIVELY.get() + number);
        Natively(number, PhantomData)
    }

    /// They are helpers of the runtime.
    #[inline]
    pub fn helpers() -> Natively {
        Natively::new(HELPER)
    }
}

impl Drop for Natively {
    fn drop(&mut self) {
        NATIVELY.set(NATIVELY.get() - self.0);
    }
}

/// Calls `f`, which makes platform threads of the program.
pub fn natively<R>(f: impl FnOnce() -> R) -> R {
    let _natively = Natively::new(1);
    f()
}

/// Returns whether the calling thread makes a platform thread.
#[inline]
pub fn is_asked_for() -> bool {
    NATIVELY.get() > 0
}

/// Returns whether the calling thread makes a helper of the runtime.
#[inline]
pub fn is_for_helper() -> bool {
    NATIVELY.get() >= HELPER
}
