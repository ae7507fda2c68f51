//! Cancellation of threads that `pthread_create` has made.
//!
//! The state of a virtual thread is in its own record, not in glibc's, whose bits differ by
//! version. The canceller sets a bit and interrupts the thread, which ends the thread's wait if it
//! waits. The thread acts at its next cancellation point, as if it called `pthread_exit` there:
//! glibc unwinds the stack, and runs the handlers of `pthread_cleanup_push` and the destructors of
//! C++.
//!
//! ```text
//!   canceller                 the thread, at a cancellation point
//!   1 PENDING                 a  PENDING, and not DISABLED?      act
//!   2 not DISABLED:           b  the call; a wait in it ends
//!     interrupt               c  ended by an interrupt?          a, and then the call again
//! ```
//!
//! A call that has had an effect is not cancelled: what it has read would be lost. The interrupt of
//! a thread that has disabled cancellation meanwhile is taken back at the next point.
//!
//! `pirn_libc::cancel` says which functions are cancellation points.
//!
//! A thread with asynchronous cancellation also acts at once if it cancels itself, and while it
//! computes: the canceller requests a [safe point](pirn_rt::sched::safepoint), which interrupts the
//! thread in its own code. If that is code of `libpirn.so` just then, whose frames cannot be
//! unwound from any instruction, or if the thread is in a wait that is no cancellation point, the
//! monitor interrupts it again later.

use crate::record::{self, Cancellation, Pthread};
use core::ffi::{c_int, c_void};
use core::ptr;
use pirn_libc::posix::{Cancellable, Record};
use pirn_rt::glibc::symbols::real;
use pirn_rt::no_suspend::NoSuspend;
use pirn_rt::sched::safepoint;
use pirn_rt::vthread;

/// `PTHREAD_CANCEL_ENABLE` and `PTHREAD_CANCEL_DEFERRED`.
const CLEAR: c_int = 0;
/// `PTHREAD_CANCEL_DISABLE` and `PTHREAD_CANCEL_ASYNCHRONOUS`.
const SET: c_int = 1;
/// `PTHREAD_CANCELED`.
const CANCELED: *mut c_void = ptr::without_provenance_mut(usize::MAX);

impl Cancellable for Pthread {
    unsafe fn before_wait(&self) {
        if self.cancellation.is_pending() {
            // SAFETY: the caller's contract.
            unsafe { self.test_cancel() };
            if let Some(core) = vthread::current() {
                core.wait.take();
            }
        }
    }

    unsafe fn after_wait(&self, was_interrupted: bool) -> bool {
        if !was_interrupted || !self.cancellation.is_pending() {
            return false;
        }
        // SAFETY: the caller's contract.
        unsafe { self.test_cancel() };
        vthread::current().is_some_and(|core| core.wait.take()) // Else something else interrupted it.
    }

    unsafe fn test_cancel(&self) {
        if self.cancellation.is_due() {
            // SAFETY: the caller's contract.
            unsafe { act(self) }
        }
    }

    fn is_cancelled_anywhere(&self) -> bool {
        self.cancellation.is_asynchronous() && self.cancellation.is_due()
    }

    unsafe fn test_cancel_anywhere(&self) {
        if self.is_cancelled_anywhere() {
            // SAFETY: the caller's contract.
            unsafe { act(self) }
        }
    }

    unsafe fn cancel(&self) {
        let state = &self.cancellation;
        if record::own().is_some_and(|own| ptr::eq(own, self)) {
            state.change(Cancellation::PENDING, true);
            // SAFETY: the caller's contract.
            return unsafe { self.test_cancel_anywhere() };
        }
        // As soon as the bit is set the thread may act, end, and be joined: the record stays until
        // the reference is dropped. No handler or cancellation of the caller's comes in between.
        let _section = NoSuspend::new();
        let _kept = self.core().to_ref();
        let again = state.change(Cancellation::PENDING, true) != 0;
        if !again && state.is_due() && !self.has_ended() {
            self.interrupt();
            if state.is_asynchronous() {
                safepoint::request(self.core()); // It looks where it computes.
            }
        }
    }

    unsafe fn set_cancel_state(&self, state: c_int, old: *mut c_int) -> c_int {
        // SAFETY: the caller's contract.
        unsafe { change(self, Cancellation::DISABLED, state, old) }
    }

    unsafe fn set_cancel_type(&self, kind: c_int, old: *mut c_int) -> c_int {
        // SAFETY: the caller's contract.
        unsafe { change(self, Cancellation::ASYNCHRONOUS, kind, old) }
    }
}

/// Ends the running thread.
///
/// # Safety
/// As for [`Cancellable::test_cancel`].
#[cold]
unsafe fn act(own: &Pthread) -> ! {
    own.cancellation.end();
    if let Some(core) = vthread::current() {
        core.wait.take(); // Cleanup handlers may wait.
    }
    let value = CANCELED;
    own.exit_with(value);
    // SAFETY: the caller's contract.
    unsafe { real!(unwinding fn pthread_exit(value: *mut c_void) -> !) }
}

/// Sets or clears a bit, and acts at once if cancellation is asynchronous now.
///
/// # Safety
/// As for [`Cancellable::test_cancel`]; `old` is null or valid for a write.
unsafe fn change(own: &Pthread, bit: u32, value: c_int, old: *mut c_int) -> c_int {
    if !matches!(value, CLEAR | SET) {
        return libc::EINVAL;
    }
    let before = own.cancellation.change(bit, value == SET);
    // SAFETY: the caller's contract.
    unsafe {
        if !old.is_null() {
            *old = before;
        }
        own.test_cancel_anywhere();
    }
    0
}
