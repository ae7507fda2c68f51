//! Locks on files: `flock`, `lockf`, and the waiting kinds of `fcntl`.
//!
//! The kernel can be asked to try, or to block, but not to tell when a lock may be had. A thread of
//! the pool must not block for it: a thousand contenders would fill the pool, and the holder may
//! need it to get done. So a virtual thread tries, and parks before it tries again: until a lock is
//! given back in this process ([`lock_released`]), or, because other processes give back locks too,
//! for a millisecond, then two, up to twenty.
//!
//! Two differences from blocking in the kernel remain: `fcntl` does not notice a deadlock
//! (`EDEADLK`), and the contenders take turns roughly, not strictly, in the order in which they
//! came.

use crate::blocking::parking_lot::{self, Parked};
use crate::glibc::symbols::real;
use crate::interpose::registry::interposed;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno, SysResult, call};
use crate::time::Deadline;
use core::ffi::{c_int, c_short};
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use libc::off_t;

interposed! {
    family "Locks on files" for Scaling,
        cannot "take turns strictly: contenders try again when a lock of this process is given \
            back, and every 1 to 20 ms, since other processes give back locks as well";

    Parks by hand { flock, lockf }
    Parks as {
        fn lockf64(fd: c_int, command: c_int, length: off_t) -> c_int = lockf(fd, command, length);
    }
}

const FIRST_PAUSE_NS: u64 = 1_000_000;
const LONGEST_PAUSE_NS: u64 = 20_000_000;
/// How many of those who wait, for whichever files, try again when some lock is given back.
const TRIES: usize = 8;

/// How many wait. The address is what they park on.
static WAITING: AtomicUsize = AtomicUsize::new(0);
/// Counts the locks given back while somebody waits.
static RELEASES: AtomicU32 = AtomicU32::new(0);

/// A lock may have been given back.
#[inline]
pub(crate) fn lock_released() {
    // Relaxed: who begins to wait just now will try again after a millisecond.
    if WAITING.load(Ordering::Relaxed) > 0 {
        wake();
    }
}

#[cold]
fn wake() {
    // Release: pairs with the Acquire below.
    RELEASES.fetch_add(1, Ordering::Release);
    parking_lot::unpark(key(), TRIES, u32::MAX);
}

fn key() -> usize {
    (&raw const WAITING).addr()
}

/// Takes a lock as if `try_lock` blocked. On a virtual thread.
pub(crate) fn lock_patiently(try_lock: impl Fn() -> SysResult) -> SysResult {
    match try_lock() {
        Err(Errno(libc::EAGAIN | libc::EACCES)) => {}
        result => return result,
    }
    WAITING.fetch_add(1, Ordering::Relaxed); // Relaxed: see `lock_released`.
    let result = wait_and_try(try_lock);
    WAITING.fetch_sub(1, Ordering::Relaxed);
    result
}

fn wait_and_try(try_lock: impl Fn() -> SysResult) -> SysResult {
    let mut pause = FIRST_PAUSE_NS;
    loop {
        // Acquire: pairs with the Release in `wake`: what is tried after it comes after that
        // release.
        let seen = RELEASES.load(Ordering::Acquire);
        match try_lock() {
            Err(Errno(libc::EAGAIN | libc::EACCES)) => {}
            result => {
                // A shared lock leaves room for more of its kind.
                parking_lot::unpark(key(), 1, u32::MAX);
                return result;
            }
        }
        let nothing_new = || RELEASES.load(Ordering::Relaxed) == seen; // Relaxed: loaded again above.
        let deadline = Deadline::after_nanos(pause);
        let parked = parking_lot::park(key(), u32::MAX, deadline, None, nothing_new);
        if parked == Parked::TimedOut {
            pause = (2 * pause).min(LONGEST_PAUSE_NS);
        }
    }
}

/// `flock`.
#[unsafe(no_mangle)]
pub extern "C" fn flock(fd: c_int, operation: c_int) -> c_int {
    // SAFETY: no pointers.
    let kernel = |operation: c_int| unsafe { call!(libc::SYS_flock, fd, operation) };
    let waits = operation & (libc::LOCK_NB | libc::LOCK_UN) == 0;
    let result = if waits && virtual_thread().is_some() {
        lock_patiently(|| kernel(operation | libc::LOCK_NB))
    } else {
        kernel(operation)
    };
    if operation & libc::LOCK_EX == 0 {
        lock_released(); // Given back, or exchanged for a shared one.
    }
    sys::to_c(result) as c_int
}

/// `lockf`.
#[unsafe(no_mangle)]
pub extern "C" fn lockf(fd: c_int, command: c_int, length: off_t) -> c_int {
    if command == libc::F_LOCK && virtual_thread().is_some() {
        // SAFETY: all zeros is a valid `flock`.
        let mut lock: libc::flock = unsafe { core::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as c_short;
        lock.l_whence = libc::SEEK_CUR as c_short;
        lock.l_len = length;
        // SAFETY: the kernel reads the structure.
        let try_lock = || unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETLK, &raw const lock) };
        return sys::to_c(lock_patiently(try_lock)) as c_int;
    }
    // SAFETY: no pointers. With `F_TLOCK`, `F_ULOCK` and `F_TEST` it does not wait.
    let result = unsafe { real!(fn lockf(fd: c_int, command: c_int, length: off_t) -> c_int) };
    if command == libc::F_ULOCK {
        lock_released();
    }
    result
}
