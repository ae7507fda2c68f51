//! Barriers in other threads.

use super::call::{Errno, SysResult, call};

/// Executes a full memory barrier in every running thread of the process before it returns; a
/// thread that does not run executes one before it does.
///
/// # Errors
/// The kernel has no `membarrier(2)`, or a filter of system calls forbids it.
pub fn barrier_in_every_thread() -> SysResult {
    const PRIVATE_EXPEDITED: i32 = 1 << 3; // include/uapi/linux/membarrier.h
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: no pointers.
    let membarrier = |command: i32| unsafe { call!(libc::SYS_membarrier, command, 0, 0) };
    match membarrier(PRIVATE_EXPEDITED) {
        Err(Errno(libc::EPERM)) => {
            membarrier(REGISTER_PRIVATE_EXPEDITED)?;
            membarrier(PRIVATE_EXPEDITED)
        }
        result => result,
    }
}
