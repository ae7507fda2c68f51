//! `syscall(2)`, the function: through it `std`, `parking_lot` and others reach futexes.

use crate::blocking::futex;
use crate::interpose::by_number;
use crate::interpose::registry::interposed;
use crate::{arch, sys};
use core::ffi::c_long;

interposed! {
    family "System calls by number" for Correctness;

    Parks by hand {
        syscall: "in the calls that wait for descriptors, futexes, time, children or locks; any \
            other may block the carrier",
    }
}

/// `syscall`. Variadic in C; in the System V ABI a call of a variadic function passes integer
/// arguments exactly like that of a function with as many parameters, so all seven are declared.
/// Those not passed hold garbage, which the kernel does not look at.
///
/// # Safety
/// As for the system call.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn syscall(
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
        let result = match number {
            libc::SYS_futex => futex::futex(args),
            libc::SYS_sched_yield => return crate::interpose::time::sched_yield().into(),
            _ => match by_number::call(number, args) {
                Some(result) => return result,
                None => sys::check(arch::syscall(number, args)),
            },
        };
        sys::to_c(result) as c_long
    }
}
