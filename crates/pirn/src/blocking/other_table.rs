//! Platform threads that have a table of descriptors of their own in the kernel.
//!
//! Their numbers are not those of the process, so nothing that they do to descriptors is noted in
//! [`fds`](super::fds), also when it is done by interposed functions.

use crate::sys::{SysResult, call};
use core::cell::Cell;

thread_local! {
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Gives the calling platform thread, and those that it makes from now on, an empty table of
/// descriptors. Each of those threads calls [`join`].
pub(crate) fn make() -> SysResult {
    const UNSHARE: u32 = libc::CLOSE_RANGE_UNSHARE;
    // SAFETY: no pointers. The process's table is not touched.
    let made = unsafe { call!(libc::SYS_close_range, 0, u32::MAX, UNSHARE) };
    HERE.set(made.is_ok());
    made
}

/// Notes that the calling platform thread shares a table that another one has [made](make).
pub(crate) fn join() {
    HERE.set(true);
}

/// Returns whether the calling thread has such a table.
#[inline]
pub(super) fn is_here() -> bool {
    HERE.get()
}
