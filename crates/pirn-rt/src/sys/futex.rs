//! Futexes, for the runtime's own platform threads.

use super::{SysResult, call};
use crate::time::Deadline;
use core::sync::atomic::AtomicU32;

/// Blocks the calling OS thread while `*word == expected`, until it is woken or until `deadline`.
/// Only for the waits of the runtime's own platform threads.
pub fn futex_wait(word: &AtomicU32, expected: u32, deadline: Deadline) -> SysResult {
    let ts = deadline.timespec();
    let timeout = ts.as_ref().map_or(core::ptr::null(), |t| t as *const _);
    const OP: i32 = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the word outlives the call; the kernel only reads it.
    unsafe {
        call!(
            libc::SYS_futex,
            word.as_ptr(),
            OP,
            expected,
            timeout,
            0,
            u32::MAX
        )
    }
}

/// Wakes up to `count` OS threads blocked in [`futex_wait`] on `word`.
pub fn futex_wake(word: &AtomicU32, count: i32) -> usize {
    futex_wake_at(word.as_ptr(), count)
}

/// As [`futex_wake`], by the address of a word that may be gone.
pub fn futex_wake_at(word: *const u32, count: i32) -> usize {
    const OP: i32 = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the address is only a key; the kernel does not read through it for private wakes.
    unsafe { call!(libc::SYS_futex, word, OP, count).unwrap_or(0) }
}
