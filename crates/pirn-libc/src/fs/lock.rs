//! Locks on files: `flock`, `lockf`, and the waiting kinds of `fcntl`.
//!
//! A pool thread must not block for a lock: a thousand contenders would fill the pool, and the
//! holder may need it to release the lock. So a virtual thread tries, and [tries again](Retry):
//! when a lock is released in this process, and, because other processes release locks too, after
//! one millisecond, then two, up to twenty.
//!
//! Two differences from blocking in the kernel remain: `fcntl` does not notice a deadlock
//! (`EDEADLK`), and contenders take turns only roughly in order of arrival.

use crate::registry::interposed;
use crate::{cancel, virtual_thread};
use core::ffi::{c_int, c_short};
use libc::off_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::retry::Retry;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};

interposed! {
    family "Locks on files" for Scaling,
        cannot "take turns strictly: contenders try again when a lock of this process is given \
            back, and every 1 to 20 ms, since other processes give back locks as well";

    Parks by hand { flock, lockf }
    Parks alias { lockf64 = lockf }
}

/// The threads that wait for any lock.
static CONTENDERS: Retry = Retry::new(1_000_000);

/// Notes that a lock may have been released.
#[inline]
pub(crate) fn lock_released() {
    CONTENDERS.chance();
}

/// Takes a lock as if `try_lock` blocked. Called on a virtual thread. An interrupt ends the wait of
/// a thread that can be cancelled.
pub(crate) fn lock_patiently(fd: c_int, try_lock: impl Fn() -> SysResult) -> SysResult {
    let attempt = || match try_lock() {
        Err(Errno(libc::EACCES)) => Err(Errno(libc::EAGAIN)),
        result => result,
    };
    match attempt() {
        Err(Errno(libc::EAGAIN)) => {
            let lock = WaitReason::descriptor(Kind::FileLock, fd);
            let interruptible = cancel::interruptible();
            CONTENDERS.until(lock, Deadline::NEVER, interruptible, attempt)
        }
        result => result,
    }
}

#[libc_fn]
pub fn flock(fd: c_int, operation: c_int) -> c_int {
    // SAFETY: no pointers.
    let kernel = |operation: c_int| unsafe { call!(libc::SYS_flock, fd, operation) };
    let waits = operation & (libc::LOCK_NB | libc::LOCK_UN) == 0;
    let result = if waits && virtual_thread().is_some() {
        lock_patiently(fd, || kernel(operation | libc::LOCK_NB))
    } else {
        kernel(operation)
    };
    if operation & libc::LOCK_EX == 0 {
        lock_released(); // Released, or exchanged for a shared one.
    }
    sys::to_c(result) as c_int
}

#[libc_fn]
pub fn lockf(fd: c_int, command: c_int, length: off_t) -> c_int {
    match command {
        // SAFETY: nothing to drop.
        libc::F_LOCK => unsafe { cancel::own_point(move || lock_part(fd, command, length)) },
        _ => lock_part(fd, command, length),
    }
}

fn lock_part(fd: c_int, command: c_int, length: off_t) -> c_int {
    if command == libc::F_LOCK && virtual_thread().is_some() {
        // SAFETY: all zeros is a valid `flock`.
        let mut lock: libc::flock = unsafe { core::mem::zeroed() };
        lock.l_type = libc::F_WRLCK as c_short;
        lock.l_whence = libc::SEEK_CUR as c_short;
        lock.l_len = length;
        // SAFETY: the kernel reads the structure.
        let try_lock = || unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETLK, &raw const lock) };
        return sys::to_c(lock_patiently(fd, try_lock)) as c_int;
    }
    // SAFETY: no pointers. With `F_TLOCK`, `F_ULOCK` and `F_TEST` it does not wait.
    let result = unsafe { real!(fn lockf(fd: c_int, command: c_int, length: off_t) -> c_int) };
    if command == libc::F_ULOCK {
        lock_released();
    }
    result
}
