//! Polling descriptors without waiting.

use super::{SysResult, call, timespec, uninterrupted};
use crate::time::Deadline;
use core::ffi::c_int;
use libc::{nfds_t, pollfd};

/// Calls `poll` without waiting.
///
/// # Safety
/// `entries` is valid for reads and writes of `count` elements; for other addresses the kernel
/// returns `EFAULT`.
pub(crate) unsafe fn poll_now(entries: *mut pollfd, count: nfds_t) -> SysResult {
    let at_once = timespec(0);
    // A signal ends even a poll that does not wait.
    uninterrupted(|| {
        // SAFETY: the caller's contract; the timespec is valid.
        unsafe { call!(libc::SYS_ppoll, entries, count, &raw const at_once, 0, 0) }
    })
}

/// Waits until a descriptor is readable, or until the deadline. Returns whether it is. Without a
/// descriptor (-1), only sleeps. May return early.
pub(crate) fn poll_until(fd: c_int, deadline: Deadline) -> bool {
    let mut entry = pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let time = timespec(deadline.left());
    // SAFETY: one entry; the timespec is valid.
    let count = unsafe { call!(libc::SYS_ppoll, &raw mut entry, 1, &raw const time, 0, 0) };
    count.is_ok_and(|count| count > 0)
}

/// Returns which of these events a descriptor has right now, in addition to those that are always
/// reported (`POLLERR`, `POLLHUP`, `POLLNVAL`).
pub(crate) fn events_now(fd: c_int, events: i16) -> i16 {
    let mut entry = pollfd {
        fd,
        events,
        revents: 0,
    };
    // SAFETY: one entry.
    match unsafe { poll_now(&raw mut entry, 1) } {
        Ok(_) => entry.revents,
        Err(_) => 0,
    }
}
