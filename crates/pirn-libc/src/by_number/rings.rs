//! io_uring by number. What the kernel ties to the OS thread that made a ring is left out for a
//! virtual thread, which goes from one to another: all of it is optional, and programs do without
//! it on older kernels.
//!
//! A wait for completions (`io_uring_enter`) blocks the carrier, as any call that is not known
//! here. liburing makes its calls itself: see `docs/limits.md`.

use crate::virtual_thread;
use core::ffi::c_long;
use pirn_rt::sys::{self, Errno, call};

// linux/io_uring.h
const COOP_TASKRUN: u32 = 1 << 8;
const TASKRUN_FLAG: u32 = 1 << 9;
const SINGLE_ISSUER: u32 = 1 << 12;
const DEFER_TASKRUN: u32 = 1 << 13;
const REGISTERED_FD_ONLY: u32 = 1 << 15;
const REGISTER_RING_FDS: u32 = 20;
const USE_REGISTERED_RING: u32 = 1 << 31;

/// A ring with these takes requests from one OS thread only (`EEXIST` for all others), or leaves
/// its completions to that thread until it enters the kernel.
const OF_ONE_THREAD: u32 = COOP_TASKRUN | TASKRUN_FLAG | SINGLE_ISSUER | DEFER_TASKRUN;

/// The place of the flags in `struct io_uring_params`.
const FLAGS: usize = 8;

/// Does what the system call does. Returns `None` if the call is the kernel's.
///
/// # Safety
/// As for the system call.
pub(super) unsafe fn call(number: c_long, a: [usize; 6]) -> Option<c_long> {
    virtual_thread()?;
    match number {
        // SAFETY: the caller's contract.
        libc::SYS_io_uring_setup => unsafe { setup(a) },
        libc::SYS_io_uring_register => {
            // The number that it gives out is in a table of the OS thread.
            let what = a[1] as u32 & !USE_REGISTERED_RING;
            (what == REGISTER_RING_FDS).then(unknown)
        }
        _ => None,
    }
}

/// Returns what a kernel does that does not know a flag.
fn unknown() -> c_long {
    sys::to_c(Err(Errno(libc::EINVAL))) as c_long
}

/// `io_uring_setup`, without the flags that tie a ring to an OS thread.
///
/// # Safety
/// As for the system call.
unsafe fn setup([entries, params, ..]: [usize; 6]) -> Option<c_long> {
    let place = params.wrapping_add(FLAGS);
    let flags = sys::fetch_u32(place).ok()?;
    if flags & REGISTERED_FD_ONLY != 0 {
        return Some(unknown());
    }
    if flags & OF_ONE_THREAD == 0 {
        return None;
    }
    // SAFETY: it was read just now, and the caller lets the kernel, and nobody else, write there.
    unsafe { (place as *mut u32).write_unaligned(flags & !OF_ONE_THREAD) };
    // SAFETY: the caller's contract.
    Some(sys::to_c(unsafe { call!(libc::SYS_io_uring_setup, entries, params) }) as c_long)
}
