//! What the functions do that the [tables](crate::registry) define: a call on the pool, or as the
//! carrier.

use crate::virtual_thread;
use core::ffi::{CStr, c_int, c_long};
use pirn_rt::arch;
use pirn_rt::blocking::pool;
use pirn_rt::sys::{self, Errno, SysResult};
use pirn_rt::vthread;
use pirn_rt::vthread::awaited::Awaited;

/// Calls `function`, which must not unwind, on the running platform thread or the running virtual
/// thread's carrier, and blocks that thread.
pub(crate) fn on_carrier<R>(function: impl FnOnce() -> R) -> R {
    // SAFETY: `function` calls libc's functions, which do not unwind.
    unsafe { vthread::on_carrier(function) }
}

/// Makes a system call at once if it needs only what is `at_hand`, and otherwise on the pool.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn glance(
    name: &'static CStr,
    at_hand: impl FnOnce() -> bool,
    number: c_long,
    args: [usize; 6],
) -> isize {
    // SAFETY: the caller's contract.
    unsafe {
        if virtual_thread().is_some() && at_hand() {
            sys::to_c(sys::check(arch::syscall(number, args)))
        } else {
            bounded_call(name, number, args)
        }
    }
}

/// Makes a system call that ends by itself, for the function of this name. Returns its result as
/// a C function does.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn bounded_call(name: &'static CStr, number: c_long, args: [usize; 6]) -> isize {
    // SAFETY: the caller's contract.
    sys::to_c(pool::bounded(Awaited::call(name), || unsafe {
        sys::check(arch::syscall(number, args))
    }))
}

/// Returns the result of a C function that reports through `errno`.
pub(crate) fn from_c(result: c_int) -> SysResult {
    if result == -1 {
        Err(Errno(sys::errno()))
    } else {
        Ok(result as usize)
    }
}

/// Returns the six arguments of a system call, of which the first are given.
pub(crate) fn args<const N: usize>(given: [usize; N]) -> [usize; 6] {
    let mut all = [0; 6];
    all[..N].copy_from_slice(&given);
    all
}
