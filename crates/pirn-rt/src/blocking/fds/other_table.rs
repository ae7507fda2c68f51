//! Platform threads that have a table of descriptors of their own in the kernel.
//!
//! Their numbers are not the process's, so nothing that they do to descriptors is noted in
//! [the table](super), also when it is done by interposed functions.

use crate::reactor::epoll::Poller;
use crate::sys::{SysResult, call};
use core::cell::Cell;

thread_local! {
    static HERE: Cell<bool> = const { Cell::new(false) };
}

/// Gives the calling platform thread, and those that it makes from now on, a table of descriptors
/// of its own, which has only the descriptors of `poller`. Each of those threads calls [`join`].
///
/// Such a thread may wake virtual threads, and so kick the poller, which writes to a descriptor by
/// its number: without it, the write would go into whatever has that number in the new table, and
/// the kick would be lost. The process never closes these two, so a copy stays right.
pub fn make(poller: &Poller) -> SysResult {
    let mut keep = poller.descriptors().map(|fd| fd as u32);
    keep.sort_unstable();
    let [low, high] = keep;
    let mut made = Ok(0);
    for (first, end) in [(0, low), (low + 1, high), (high + 1, u32::MAX)] {
        if first < end {
            const UNSHARE: u32 = libc::CLOSE_RANGE_UNSHARE;
            // SAFETY: no pointers. The process's table is not touched: each call unshares it, and
            // the calls after the first find it unshared.
            made = unsafe { call!(libc::SYS_close_range, first, end - 1, UNSHARE) };
            made?;
            HERE.set(true);
        }
    }
    made
}

/// Notes that the calling platform thread shares a table that another one has [made](make).
pub fn join() {
    HERE.set(true);
}

/// Returns whether the calling thread has such a table.
#[inline]
pub(in crate::blocking) fn is_here() -> bool {
    HERE.get()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kicks_from_there_arrive() {
        let poller = Poller::new().unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                // Others open descriptors meanwhile, but not in this table.
                make(&poller).unwrap();
                poller.kick();
            });
        });
        assert!(poller.take_kicks());
    }

    #[test]
    fn nothing_else_is_there() {
        let poller = Poller::new().unwrap();
        let (_, writer) = std::io::pipe().unwrap();
        let fd = std::os::fd::AsRawFd::as_raw_fd(&writer);
        let open = |fd| {
            // SAFETY: no pointers.
            unsafe { call!(libc::SYS_fcntl, fd, libc::F_GETFD) }.is_ok()
        };
        std::thread::scope(|scope| {
            scope.spawn(|| {
                make(&poller).unwrap();
                assert!(poller.descriptors().into_iter().all(open));
                assert!(!open(0) && !open(1) && !open(2) && !open(fd));
            });
        });
        assert!(open(fd));
    }
}
