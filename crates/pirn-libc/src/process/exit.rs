//! `exit` and `quick_exit`: the program's functions that run at the end of the process may park.
//!
//! Since glibc 2.41 the first thread that calls `exit` keeps all others waiting in libc until the
//! process has ended. Virtual threads among these park.

use crate::registry::interposed;
use crate::sync::Recursive;
use core::ffi::c_int;
use pirn_rt::glibc::symbols::real;

interposed! {
    family "The end of the process" for Scaling;

    Parks as {
        fn exit(status: c_int) -> ()
            = EXITING.while_locked(|| real!(fn exit(status: c_int) -> ()));
        fn quick_exit(status: c_int) -> ()
            = EXITING.while_locked(|| real!(fn quick_exit(status: c_int) -> ()));
    }
}

/// Never unlocked. The functions may themselves call `exit`.
static EXITING: Recursive = Recursive::new();

/// Forgets that a thread of the parent was ending the process.
///
/// # Safety
/// In the child of a fork, by its only thread.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe { EXITING.renew() };
}
