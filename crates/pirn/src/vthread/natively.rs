//! Threads that must be platform threads, whatever `pthread_create` makes for the program.
//!
//! The runtime's own threads (carriers, the monitor, the pool, the reporter, …) carry virtual
//! threads or serve them. They are made through `std`, and so by the very `pthread_create` that may
//! make virtual threads of those of the program: their makers say so here.
//!
//! These [helpers](Helpers) begin with all signals blocked that others can send. The kernel gives a
//! signal of the process to any OS thread that does not block it, also to one that has not begun.

use core::cell::Cell;
use core::marker::PhantomData;

thread_local! {
    /// The number of calls of [`natively`], and of [`Helpers`], of the thread.
    static NATIVELY: Cell<u32> = const { Cell::new(0) };
    /// The number of [`Helpers`].
    static HELPERS: Cell<u32> = const { Cell::new(0) };
}

fn add(to: &'static std::thread::LocalKey<Cell<u32>>, number: i32) {
    to.set(to.get().wrapping_add_signed(number));
}

/// While this lives, the threads that the calling thread makes are helpers of the runtime.
#[must_use = "it has no effect once it is dropped"]
pub(crate) struct Helpers(PhantomData<*const ()>);

impl Helpers {
    pub(crate) fn new() -> Helpers {
        add(&NATIVELY, 1);
        add(&HELPERS, 1);
        Helpers(PhantomData)
    }
}

impl Drop for Helpers {
    fn drop(&mut self) {
        add(&HELPERS, -1);
        add(&NATIVELY, -1);
    }
}

/// Calls `f`, which makes helpers of the runtime.
pub(crate) fn helpers<R>(f: impl FnOnce() -> R) -> R {
    let _helpers = Helpers::new();
    f()
}

/// Calls `f`, which makes platform threads of the program.
pub(crate) fn natively<R>(f: impl FnOnce() -> R) -> R {
    struct Lower;
    impl Drop for Lower {
        fn drop(&mut self) {
            add(&NATIVELY, -1);
        }
    }
    add(&NATIVELY, 1);
    let _lower = Lower;
    f()
}

/// Returns whether the calling thread makes a platform thread.
pub(crate) fn is_asked_for() -> bool {
    NATIVELY.get() > 0
}

/// Returns whether the calling thread makes a helper of the runtime.
pub(crate) fn is_for_helper() -> bool {
    HELPERS.get() > 0
}
