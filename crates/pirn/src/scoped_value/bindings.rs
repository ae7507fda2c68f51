//! The list of the values that are bound on a thread.
//!
//! A binding lies on the stack of the call that made it, and points to the binding before, its
//! outer one. A thread-local (one per virtual thread, therefore) has the head of this list. A fork
//! of a structured scope starts with the head as it was when the scope was opened: one pointer,
//! however many bindings there are.
//!
//! ```text
//!                            the owner's stack           a fork's stack
//!
//!   USER.bind("alice", ..)   USER = "alice"
//!                              ^
//!   REQUEST.bind(&7, ..)     REQUEST = 7
//!                              ^   ^
//!   scope(..)                  |   '-------------------- REQUEST = 8     REQUEST.bind(&8, ..)
//!                              |                           ^
//!   USER.bind("bob", ..)     USER = "bob"                  '-- in force
//!                              ^
//!                              '-- in force
//! ```
//!
//! The owner reads `USER` as bob (the nearest binding hides those behind it) and `REQUEST` as 7;
//! the fork reads alice and 8. A binding never changes, and its outer ones outlive it: on one stack
//! because calls nest, and from a fork to its owner because a scope waits for its forks. So any
//! thread can read a list without locks or counts.

use core::cell::Cell;
use core::ptr;
use pirn_rt::panic;

/// One bound value, on the stack of the [`Bindings::bind`] that made it.
struct Binding {
    /// Identifies the scoped value.
    key: *const (),
    /// Points to its value.
    value: *const (),
    /// The bindings that were in force before.
    outer: Bindings,
}

/// The bindings in force at some point of a thread: the head of a list.
///
/// Holding it keeps no binding in force. The reader must ensure that (by [`within`](Self::within),
/// which is unsafe for this reason).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Bindings(*const Binding);

// SAFETY: it is read only inside `within`, whose caller upholds that the list lives; a list never
// changes, so any thread may read it. The targets of its pointers are not read here, and
// `ScopedValue` requires `Sync`.
unsafe impl Send for Bindings {}
// SAFETY: it is read only inside `within`, whose caller upholds that the list lives; a list never
// changes, so any thread may read it.
unsafe impl Sync for Bindings {}

thread_local! {
    // Has no destructor, so that the destructors of other thread-locals can read it.
    static IN_FORCE: Cell<Bindings> = const { Cell::new(Bindings(ptr::null())) };
}

impl Bindings {
    /// Returns the bindings in force on this thread.
    #[inline]
    pub(crate) fn current() -> Bindings {
        IN_FORCE.get()
    }

    /// Calls `f` with these bindings in force on this thread, in place of its own.
    ///
    /// Restores the thread's own bindings afterwards, also when `f` panics.
    ///
    /// # Safety
    /// The `bind` calls that made these bindings return only after this call has.
    #[inline]
    pub(crate) unsafe fn within<R>(self, f: impl FnOnce() -> R) -> R {
        panic::with_local(&IN_FORCE, self, f)
    }

    /// Calls `f` with `value` bound to `key`, in addition to the bindings in force.
    ///
    /// # Safety
    /// Until `f` has returned, `value` is what readers of `key` may follow.
    #[inline]
    pub(super) unsafe fn bind<R>(key: *const (), value: *const (), f: impl FnOnce() -> R) -> R {
        let binding = Binding {
            key,
            value,
            outer: Bindings::current(),
        };
        // SAFETY: `binding` lives until `within` has returned. The outer ones are in force now, and
        // the caller that put them in force keeps them alive until we have returned.
        unsafe { Bindings(&raw const binding).within(f) }
    }

    /// Returns the value of the nearest binding of `key` in force on this thread.
    #[inline]
    pub(super) fn find(key: *const ()) -> Option<*const ()> {
        let mut next = Bindings::current();
        // SAFETY: null or a binding in force; the caller of `within` upholds that it and its outer
        // ones live.
        while let Some(binding) = unsafe { next.0.as_ref() } {
            if binding.key == key {
                return Some(binding.value);
            }
            next = binding.outer;
        }
        None
    }
}

// How bindings pass from the owner of a scope to its forks. `tests/thread/scoped_values.rs` tests
// the public interface.
#[cfg(test)]
mod tests;
