//! The function `syscall(2)`, through which `std`, `parking_lot` and others call futexes.

use crate::registry::interposed;
use crate::signals::delivery;
use crate::{by_number, futex_pi};
use core::ffi::c_long;
use pirn_rt::blocking::futex;
use pirn_rt::sys;

interposed! {
    family "System calls by number" for Correctness;

    Parks by hand {
        syscall: "in the calls that wait for descriptors, futexes, time, children, locks or \
            signals; any other may block the carrier",
    }
}

/// `syscall`. It is variadic in C. In the System V ABI a call of a variadic function passes integer
/// arguments exactly like a call of a function with that many parameters, so all seven are
/// declared. Arguments that were not passed hold garbage, which the kernel does not read.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn syscall(
    number: c_long,
    a: usize,
    b: usize,
    c: usize,
    d: usize,
    e: usize,
    f: usize,
) -> c_long {
    let args = [a, b, c, d, e, f];
    // SAFETY: the caller's contract, here and below.
    unsafe {
        match number {
            libc::SYS_futex => sys::to_c(futex::futex(args, futex_pi::call)) as c_long,
            libc::SYS_sched_yield => crate::time::sched_yield().into(),
            libc::SYS_gettid => crate::identity::gettid().into(),
            _ => other(number, args),
        }
    }
}

/// A separate function, so that a futex call does not save the registers that this one
/// needs.
///
/// # Safety
/// As for the system call.
#[inline(never)]
unsafe fn other(number: c_long, args: [usize; 6]) -> c_long {
    // SAFETY: the caller's contract.
    unsafe {
        by_number::call(number, args)
            .unwrap_or_else(|| sys::to_c(delivery::kernels(number, args)) as c_long)
    }
}
