//! `preadv2` and `pwritev2`: reading and writing with flags.

use crate::io::transfer::{preadv, pwritev, readv, writev};
use crate::registry::interposed;
use core::ffi::{c_int, c_long};
use libc::{iovec, off_t, ssize_t};
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sys::{self, call};
use pirn_rt::vthread::awaited::Awaited;

const READ: c_long = libc::SYS_preadv2;
const WRITE: c_long = libc::SYS_pwritev2;

interposed! {
    family "Reading and writing with flags" for Scaling,
        cannot "park with flags: calls that may wait run on a platform thread of their own, on files on the pool";

    Parks as {
        fn preadv2(fd: c_int, iov: *const iovec, count: c_int, offset: off_t, flags: c_int)
            -> ssize_t = flagged(READ, fd, iov, count, offset, flags);
        fn preadv64v2(fd: c_int, iov: *const iovec, count: c_int, offset: off_t, flags: c_int)
            -> ssize_t = flagged(READ, fd, iov, count, offset, flags);
        fn pwritev2(fd: c_int, iov: *const iovec, count: c_int, offset: off_t, flags: c_int)
            -> ssize_t = flagged(WRITE, fd, iov, count, offset, flags);
        fn pwritev64v2(fd: c_int, iov: *const iovec, count: c_int, offset: off_t, flags: c_int)
            -> ssize_t = flagged(WRITE, fd, iov, count, offset, flags);
    }
}

/// Calls `preadv2` or `pwritev2`. Without flags they are `preadv` and `pwritev`; with the offset -1
/// they are `readv` and `writev`.
///
/// # Safety
/// As for `preadv2(2)`.
unsafe fn flagged(
    number: c_long,
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    offset: off_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract, here and below.
    let kernel = || unsafe { call!(number, fd, iov, count, offset, 0, flags) };
    let awaited = || {
        Awaited::call(match number {
            READ => c"preadv2",
            _ => c"pwritev2",
        })
    };
    // SAFETY: as above.
    unsafe {
        match (number, flags, offset) {
            (READ, 0, -1) => readv(fd, iov, count),
            (READ, 0, _) => preadv(fd, iov, count, offset),
            (_, 0, -1) => writev(fd, iov, count),
            (_, 0, _) => pwritev(fd, iov, count, offset),
            _ if flags & libc::RWF_NOWAIT != 0 => sys::to_c(kernel()),
            _ if fds::may_be_file(fd) => sys::to_c(pool::bounded(awaited(), kernel)),
            _ => sys::to_c(pool::dedicated(awaited(), kernel)),
        }
    }
}
