//! What the program takes for random: from the seed, for the simulation's threads.

use crate::run::is_inside;
use crate::world;
use core::ffi::{c_int, c_void};
use core::slice;
use libc::{c_uint, size_t, ssize_t};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched::simulation;

/// Fills a buffer by the seed, if there is a run.
pub(crate) fn fill(buffer: &mut [u8]) -> bool {
    world::draw(|streams| streams.data.fill(buffer)).is_some()
}

/// `getrandom`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getrandom(
    to: *mut c_void,
    length: size_t,
    flags: c_uint,
) -> ssize_t {
    if simulation::is_running() && is_inside() {
        // SAFETY: the caller's contract.
        let buffer = unsafe { slice::from_raw_parts_mut(to.cast(), length) };
        if fill(buffer) {
            return length as ssize_t;
        }
    }
    // SAFETY: libc's function; the caller's contract.
    unsafe {
        real!(unwinding fn getrandom(to: *mut c_void, length: size_t, flags: c_uint) -> ssize_t)
    }
}

/// `getentropy`: up to 256 bytes.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn getentropy(to: *mut c_void, length: size_t) -> c_int {
    if length > 256 {
        // SAFETY: the thread's own.
        unsafe { *libc::__errno_location() = libc::EIO };
        return -1;
    }
    // SAFETY: the caller's contract.
    match unsafe { getrandom(to, length, 0) } < 0 {
        true => -1,
        false => 0,
    }
}
