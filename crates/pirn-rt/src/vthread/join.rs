//! The end of a thread, and the thread or task that waits for it.
//!
//! ```text
//!   EMPTY    (null)      the thread runs, nobody waits
//!   waiter   (pointer)   the thread runs, and `waiter` is to be woken
//!   DONE     (sentinel)  the thread has ended, its result is there; final
//!
//!   from       to         by            which means
//!   EMPTY      waiter     register      the joiner will park
//!   DONE       DONE       register      ... or need not
//!   waiter     EMPTY      unregister    the joiner takes it back: nobody will wake it
//!   DONE       DONE       unregister    ... or the finisher has it and wakes it
//!   EMPTY      DONE       finish        nobody to wake
//!   waiter     DONE       finish        the finisher has to wake `waiter`
//! ```
//!
//! Exactly one read-modify-write, of `unregister` or of `finish`, takes the waiter out of the cell;
//! the waiter then belongs to its caller.
//!
//! A joiner takes its waiter back when it gives up, or to change the waiter and register it again:
//! a future does that in each poll, because its task may have another waker by then. If the
//! finisher was faster, the joiner cannot tell when it is done with the waiter. So a waiter that
//! may be taken back must not lie on the joiner's stack, but belong to the side that has it.

use core::ptr::{self, NonNull};

use crate::primitives::{
    AtomicPtr,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

/// No waiter has this address, because waiters are pointers to objects.
const DONE: *mut () = ptr::without_provenance_mut(1);

/// The place where one finisher and at most one joiner meet.
///
/// What the finisher did before `finish`, such as writing the result, happens before what the
/// joiner does after `is_done` returned `true`, after `register` or `unregister` returned `false`,
/// or after it was woken. The pointer to the waiter is only passed on, never followed.
#[derive(Debug)]
pub(crate) struct JoinCell {
    state: AtomicPtr<()>,
}

impl JoinCell {
    /// Returns the cell of a thread that has not ended.
    #[inline]
    pub(crate) fn new() -> Self {
        Self {
            state: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Returns whether the thread has ended.
    #[inline]
    #[must_use]
    pub(crate) fn is_done(&self) -> bool {
        // Acquire: pairs with the Release in `finish`, for the result.
        self.state.load(Acquire) == DONE
    }

    /// `EMPTY → waiter`. Returns `false` if the thread has ended: then there is nothing to wait
    /// for, and `waiter` remains the caller's.
    ///
    /// After `true`, `waiter` must stay valid until `unregister` has returned `true` or it has been
    /// woken.
    #[inline]
    #[must_use = "`false` means that nobody will wake the waiter"]
    pub(crate) fn register(&self, waiter: NonNull<()>) -> bool {
        // Release: pairs with the Acquire in `finish`, for the target of `waiter`. Acquire on
        // failure: pairs with the Release in `finish`, for the result.
        let found = self
            .state
            .compare_exchange(ptr::null_mut(), waiter.as_ptr(), Release, Acquire);
        debug_assert!(
            found.is_ok() || found == Err(DONE),
            "two threads join the same one"
        );
        found.is_ok()
    }

    /// `waiter → EMPTY`, for a joiner that gives up or changes its waiter. Returns `false` if the
    /// finisher has taken the waiter: then the thread has ended, and the wake-up has come or will
    /// come.
    #[must_use = "`false` means that the waiter is still going to be woken"]
    pub(crate) fn unregister(&self, waiter: NonNull<()>) -> bool {
        // Relaxed: the finisher has not seen the waiter, and will not. Acquire on failure: pairs
        // with the Release in `finish`, for the result.
        let found = self
            .state
            .compare_exchange(waiter.as_ptr(), ptr::null_mut(), Relaxed, Acquire);
        debug_assert!(
            found.is_ok() || found == Err(DONE),
            "the waiter was not registered"
        );
        found.is_ok()
    }

    /// `any → DONE`, once. Returns the waiter, if there is one: the caller must wake it.
    ///
    /// The cell is not touched after the swap: a joiner that sees `DONE` may free it.
    #[must_use = "the waiter has to be woken"]
    #[inline]
    pub(crate) fn finish(&self) -> Option<NonNull<()>> {
        // Release: pairs with the Acquire in `is_done`, `register` and `unregister`, for the
        // result. Acquire: pairs with the Release in `register`, for the target of the waiter.
        let waiter = self.state.swap(DONE, AcqRel);
        debug_assert_ne!(waiter, DONE, "a thread ended twice");
        NonNull::new(waiter)
    }
}

impl Default for JoinCell {
    fn default() -> Self {
        Self::new()
    }
}
