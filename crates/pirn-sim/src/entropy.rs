//! What the program takes for random: from the seed, for the simulation's threads.

use crate::run::is_inside;
use crate::world;
use core::ffi::{c_int, c_void};
use core::slice;
use libc::{c_uint, size_t, ssize_t};

/// `getrandom`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getrandom(to: *mut c_void, length: size_t, flags: c_uint) -> ssize_t {
    if is_inside() {
        // SAFETY: the caller's contract.
        let buffer = unsafe { slice::from_raw_parts_mut(to.cast(), length) };
        if world::draw(|streams| streams.data.fill(buffer)).is_some() {
            return length as ssize_t;
        }
    }
    // SAFETY: the caller's contract.
    unsafe { libc::syscall(libc::SYS_getrandom, to, length, flags) as ssize_t }
}

/// `getentropy`: up to 256 bytes.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getentropy(to: *mut c_void, length: size_t) -> c_int {
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
