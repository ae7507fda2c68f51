//! What the program takes for random: from the seed, for the simulation's threads.

use crate::kernel::buffers;
use crate::run::is_inside;
use crate::world;
use core::ffi::{CStr, c_char, c_int, c_long, c_void};
use core::mem::MaybeUninit;
use core::slice;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use libc::{c_uint, size_t, ssize_t};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched::simulation;
use pirn_rt::sys::{SysResult, call};

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

/// Whether a thread of a simulation has opened a device of random numbers. Relaxed, below: the
/// threads of a simulation are on one carrier.
static OPENED: AtomicBool = AtomicBool::new(false);

/// Reads from `/dev/random` or `/dev/urandom`. `None`: the call is another.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn call(number: c_long, a: [usize; 6]) -> Option<SysResult> {
    match number {
        libc::SYS_openat if a[1] != 0 => {
            // SAFETY: the caller's contract: a path.
            let path = unsafe { CStr::from_ptr(a[1] as *const c_char) };
            if path == c"/dev/urandom" || path == c"/dev/random" {
                OPENED.store(true, Relaxed);
            }
            None
        }
        libc::SYS_readv | libc::SYS_preadv | libc::SYS_preadv2 if OPENED.load(Relaxed) => {
            if !is_device(a[0] as c_int) || a[2] > libc::UIO_MAXIOV as usize {
                return None;
            }
            let mut filled = 0;
            // SAFETY: the caller's contract.
            for buffer in unsafe { buffers(a) } {
                // SAFETY: the caller's contract.
                filled += unsafe { getrandom(buffer.iov_base, buffer.iov_len, 0) } as usize;
            }
            Some(Ok(filled))
        }
        _ => None,
    }
}

/// Returns whether a descriptor is one of a device of random numbers.
fn is_device(fd: c_int) -> bool {
    let mut found = MaybeUninit::<libc::stat>::zeroed();
    // SAFETY: room for the answer; all zeros is one.
    let found = unsafe {
        if call!(libc::SYS_fstat, fd, found.as_mut_ptr()).is_err() {
            return false;
        }
        found.assume_init()
    };
    // drivers/char/mem.c
    let devices = [libc::makedev(1, 8), libc::makedev(1, 9)];
    found.st_mode & libc::S_IFMT == libc::S_IFCHR && devices.contains(&found.st_rdev)
}

/// `arc4random`.
#[unsafe(no_mangle)]
pub extern "C" fn arc4random() -> u32 {
    let mut number = [0; 4];
    // SAFETY: four bytes.
    unsafe { getrandom(number.as_mut_ptr().cast(), number.len(), 0) };
    u32::from_ne_bytes(number)
}

/// `arc4random_buf`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn arc4random_buf(to: *mut c_void, length: size_t) {
    let mut done = 0;
    while done < length {
        // SAFETY: the caller's contract. The kernel gives at least a byte, if it gives any.
        match unsafe { getrandom(to.byte_add(done), length - done, 0) } {
            count @ 1.. => done += count as usize,
            _ => pirn_rt::sys::fatal(&["there are no random numbers"]),
        }
    }
}

/// `arc4random_uniform`.
#[unsafe(no_mangle)]
pub extern "C" fn arc4random_uniform(bound: u32) -> u32 {
    // Numbers below this are one too many for some results.
    let least = bound.wrapping_neg().checked_rem(bound).unwrap_or(0);
    loop {
        let number = arc4random();
        if number >= least {
            return number.checked_rem(bound).unwrap_or(0);
        }
    }
}
