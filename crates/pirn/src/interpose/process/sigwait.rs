//! Waiting for signals.
//!
//! `sigwait` and its relatives take a signal sent to the *process* wherever they wait, so a
//! platform thread can wait for a virtual thread. `pause` and `sigsuspend` wait until a handler has
//! run on the calling thread. For a virtual thread that is the platform thread that waits in its
//! place; the kernel may or may not choose it for a signal to the process.

use crate::blocking::offload;
use crate::glibc::symbols::real;
use crate::interpose::fs::calls::from_c;
use crate::interpose::registry::interposed;
use crate::sys;
use crate::vthread::awaited::Awaited;
use core::ffi::c_int;
use libc::{siginfo_t, sigset_t, timespec};

interposed! {
    family "Waiting for signals" for Scaling,
        cannot "wait for a signal to the virtual thread: there are only signals to the process";

    Dedicated {
        /// Returns an error number.
        fn sigwait(set: *const sigset_t, signal: *mut c_int) -> c_int;
        fn sigwaitinfo(set: *const sigset_t, info: *mut siginfo_t) -> c_int;
        fn sigsuspend(mask: *const sigset_t) -> c_int;
        fn pause() -> c_int;
    }
    Dedicated {
        fn __sigsuspend(mask: *const sigset_t) -> c_int;
        fn sigpause(mask: c_int) -> c_int;
        fn __sigpause(mask_or_signal: c_int, is_signal: c_int) -> c_int;
        fn __xpg_sigpause(signal: c_int) -> c_int;
    }
    Dedicated by hand { sigtimedwait }
}

/// `sigtimedwait`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sigtimedwait(
    set: *const sigset_t,
    info: *mut siginfo_t,
    timeout: *const timespec,
) -> c_int {
    // SAFETY: the caller's contract.
    let wait = || unsafe {
        from_c(real!(
            fn sigtimedwait(set: *const sigset_t, info: *mut siginfo_t, timeout: *const timespec) -> c_int
        ))
    };
    // SAFETY: the caller's contract.
    let only_looks = unsafe { timeout.as_ref() }.is_some_and(|t| t.tv_sec == 0 && t.tv_nsec == 0);
    let result = if only_looks {
        wait()
    } else {
        offload::dedicated(Awaited::call(c"sigtimedwait"), wait)
    };
    sys::to_c(result) as c_int
}
