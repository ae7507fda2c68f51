//! How bytes are read and written: the attempts that never block, and the loops around them.
//!
//! Three ways to try without blocking, in this order:
//! * `preadv2`/`pwritev2` with `RWF_NOWAIT`: sockets, pipes, event descriptors, and files as far as
//!   they are in the page cache;
//! * what does not know that flag (terminals, devices): `poll` with no timeout, then the plain
//!   call;
//! * what cannot be polled either (a file whose pages are on disk): the plain call, on a pool
//!   thread.

use crate::blocking::readiness::{self, Interest};
use crate::blocking::{fds, offload};
use crate::interpose::registry::interposed;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno, SysResult, call};
use core::ffi::{c_int, c_long, c_void};
use libc::{iovec, off_t, size_t, ssize_t};

const READ: [c_long; 2] = [libc::SYS_pread64, libc::SYS_preadv2];
const WRITE: [c_long; 2] = [libc::SYS_pwrite64, libc::SYS_pwritev2];
const READV: [c_long; 2] = [libc::SYS_preadv, libc::SYS_preadv2];
const WRITEV: [c_long; 2] = [libc::SYS_pwritev, libc::SYS_pwritev2];

interposed! {
    family "Reading and writing in several buffers and at offsets" for Scaling;

    Parks by hand { readv, writev }
    Glance as {
        fn pread(fd: c_int, buffer: *mut c_void, length: size_t, offset: off_t) -> ssize_t
            = positioned(READ, fd, buffer, length, offset);
        fn pread64(fd: c_int, buffer: *mut c_void, length: size_t, offset: off_t) -> ssize_t
            = positioned(READ, fd, buffer, length, offset);
        fn pwrite(fd: c_int, buffer: *const c_void, length: size_t, offset: off_t) -> ssize_t
            = positioned(WRITE, fd, buffer.cast_mut(), length, offset);
        fn pwrite64(fd: c_int, buffer: *const c_void, length: size_t, offset: off_t) -> ssize_t
            = positioned(WRITE, fd, buffer.cast_mut(), length, offset);
        fn preadv(fd: c_int, iov: *const iovec, count: c_int, offset: off_t) -> ssize_t
            = positioned_vectored(READV, fd, iov, count, offset);
        fn preadv64(fd: c_int, iov: *const iovec, count: c_int, offset: off_t) -> ssize_t
            = positioned_vectored(READV, fd, iov, count, offset);
        fn pwritev(fd: c_int, iov: *const iovec, count: c_int, offset: off_t) -> ssize_t
            = positioned_vectored(WRITEV, fd, iov, count, offset);
        fn pwritev64(fd: c_int, iov: *const iovec, count: c_int, offset: off_t) -> ssize_t
            = positioned_vectored(WRITEV, fd, iov, count, offset);
    }
}

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));
/// `-1` as an offset: at the descriptor's own position.
const HERE: isize = -1;

/// Whether a descriptor has such events right now.
pub(in crate::interpose) fn is_ready(fd: c_int, events: i16) -> bool {
    let mut poll = libc::pollfd {
        fd,
        events,
        revents: 0,
    };
    let none = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: one pollfd; a zero timeout.
    unsafe { call!(libc::SYS_ppoll, &raw mut poll, 1, &raw const none, 0, 0) }.is_ok_and(|n| n > 0)
}

/// Reads at the descriptor's position.
///
/// # Safety
/// As for `readv(2)`.
pub(in crate::interpose) unsafe fn read_vectored(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
) -> SysResult {
    // SAFETY: the caller's contract, here and below.
    let plain = move || unsafe { call!(libc::SYS_readv, fd, iov, count) };
    if virtual_thread().is_none() {
        return plain();
    }
    let attempt = || {
        // SAFETY: as above.
        match unsafe {
            call!(
                libc::SYS_preadv2,
                fd,
                iov,
                count,
                HERE,
                HERE,
                libc::RWF_NOWAIT
            )
        } {
            Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) if !is_ready(fd, libc::POLLIN) => EAGAIN,
            Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => plain(),
            result => result,
        }
    };
    let timeout = |entry: &fds::Entry| entry.timeout(fd, libc::SO_RCVTIMEO);
    match readiness::blocking(fd, Interest::Read, timeout, attempt) {
        Err(Errno(libc::EPERM)) => offload::bounded(plain),
        result => result,
    }
}

/// Writes at the descriptor's position: all of it, as a blocking write does, unless there is an
/// error or the descriptor is non-blocking.
///
/// # Safety
/// As for `writev(2)`.
pub(in crate::interpose) unsafe fn write_vectored(
    fd: c_int,
    iov: *const iovec,
    count: c_int,
) -> SysResult {
    // SAFETY: the caller's contract, here and below.
    let plain =
        move |iov: *const iovec, count: c_int| unsafe { call!(libc::SYS_writev, fd, iov, count) };
    if virtual_thread().is_none() {
        return plain(iov, count);
    }
    if count == 1 {
        // SAFETY: one buffer.
        let buffer = unsafe { *iov };
        return write_all(buffer.iov_len, |done| {
            let rest = iovec {
                // SAFETY: inside the buffer.
                iov_base: unsafe { buffer.iov_base.cast::<u8>().add(done) }.cast(),
                iov_len: buffer.iov_len - done,
            };
            // SAFETY: part of the caller's buffer.
            unsafe { write_some(fd, &rest, 1) }
        });
    }
    if !(0..=libc::UIO_MAXIOV).contains(&count) {
        return Err(Errno(libc::EINVAL));
    }
    // SAFETY: the caller's buffers.
    let all = unsafe { core::slice::from_raw_parts(iov, count as usize) };
    let total = all.iter().map(|v| v.iov_len).sum();
    write_all(total, |done| {
        let rest = after(all, done);
        // SAFETY: parts of the caller's buffers.
        unsafe { write_some(fd, rest.as_ptr(), rest.len() as c_int) }
    })
}

/// A write of no bytes: on a datagram socket that sends an empty datagram, which `pwritev2` would
/// not.
pub(in crate::interpose) fn write_nothing(fd: c_int) -> SysResult {
    let timeout = |entry: &fds::Entry| entry.timeout(fd, libc::SO_SNDTIMEO);
    readiness::blocking(fd, Interest::Write, timeout, || {
        // SAFETY: no bytes, so no pointers; nothing but a socket can block for none.
        match unsafe { call!(libc::SYS_sendto, fd, 0, 0, libc::MSG_DONTWAIT, 0, 0) } {
            // SAFETY: the same.
            Err(Errno(libc::ENOTSOCK)) => unsafe { call!(libc::SYS_write, fd, 0, 0) },
            result => result,
        }
    })
}

/// What is left of some buffers when the first `done` bytes are.
pub(in crate::interpose) fn after(all: &[iovec], mut done: usize) -> Vec<iovec> {
    let mut rest = Vec::with_capacity(all.len());
    for buffer in all {
        let skip = done.min(buffer.iov_len);
        done -= skip;
        if skip < buffer.iov_len || buffer.iov_len == 0 && done == 0 {
            // SAFETY: inside the buffer.
            let iov_base = unsafe { buffer.iov_base.cast::<u8>().add(skip) }.cast();
            rest.push(iovec {
                iov_base,
                iov_len: buffer.iov_len - skip,
            });
        }
    }
    rest
}

/// Repeats `write(done so far)` until `total` bytes are done. An error after some were done gives
/// their number: the next call will meet the error again.
pub(in crate::interpose) fn write_all(
    total: usize,
    mut write: impl FnMut(usize) -> SysResult,
) -> SysResult {
    let mut done = 0;
    loop {
        match write(done) {
            Ok(n) if done + n >= total || n == 0 => return Ok(done + n),
            Ok(n) => done += n,
            Err(_) if done > 0 => return Ok(done),
            Err(e) => return Err(e),
        }
    }
}

/// One write, as soon as it can be done.
unsafe fn write_some(fd: c_int, iov: *const iovec, count: c_int) -> SysResult {
    // SAFETY: the caller's contract, here and below.
    let plain = move || unsafe { call!(libc::SYS_writev, fd, iov, count) };
    let attempt = || {
        // SAFETY: as above.
        match unsafe {
            call!(
                libc::SYS_pwritev2,
                fd,
                iov,
                count,
                HERE,
                HERE,
                libc::RWF_NOWAIT
            )
        } {
            Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) if fds::is_file(fd) => {
                Err(Errno(libc::EPERM))
            }
            Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) if !is_ready(fd, libc::POLLOUT) => EAGAIN,
            Err(Errno(libc::EOPNOTSUPP | libc::ENOSYS)) => plain(),
            result => result,
        }
    };
    let timeout = |entry: &fds::Entry| entry.timeout(fd, libc::SO_SNDTIMEO);
    match readiness::blocking(fd, Interest::Write, timeout, attempt) {
        Err(Errno(libc::EPERM)) if fds::is_file(fd) => offload::bounded(plain),
        result => result,
    }
}

/// A call on a file at a given offset: reads may be served from the page cache at once.
unsafe fn at_offset(
    now: impl FnOnce() -> SysResult,
    plain: impl FnOnce() -> SysResult,
) -> SysResult {
    if virtual_thread().is_none() {
        return plain();
    }
    match now() {
        Err(Errno(libc::EAGAIN | libc::EOPNOTSUPP | libc::ENOSYS)) => offload::bounded(plain),
        result => result,
    }
}

/// `pread` and `pwrite`, as `plain`; `flagged` is the call that can be asked not to wait.
///
/// # Safety
/// As for `plain`.
unsafe fn positioned(
    [plain, flagged]: [c_long; 2],
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off_t,
) -> ssize_t {
    let iov = iovec {
        iov_base: buffer,
        iov_len: length,
    };
    // SAFETY: the caller's contract; a negative offset is EINVAL, and must not become HERE.
    sys::to_c(unsafe {
        at_offset(
            || {
                if offset < 0 {
                    Err(Errno(libc::EINVAL))
                } else {
                    call!(flagged, fd, &raw const iov, 1, offset, 0, libc::RWF_NOWAIT)
                }
            },
            || call!(plain, fd, buffer, length, offset),
        )
    })
}

/// `preadv` and `pwritev`, in the same way.
///
/// # Safety
/// As for `plain`.
unsafe fn positioned_vectored(
    [plain, flagged]: [c_long; 2],
    fd: c_int,
    iov: *const iovec,
    count: c_int,
    offset: off_t,
) -> ssize_t {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe {
        at_offset(
            || {
                if offset < 0 {
                    Err(Errno(libc::EINVAL))
                } else {
                    call!(flagged, fd, iov, count, offset, 0, libc::RWF_NOWAIT)
                }
            },
            || call!(plain, fd, iov, count, offset, 0),
        )
    })
}

/// `readv`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn readv(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe { read_vectored(fd, iov, count) })
}

/// `writev`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn writev(fd: c_int, iov: *const iovec, count: c_int) -> ssize_t {
    // SAFETY: the caller's contract.
    sys::to_c(unsafe { write_vectored(fd, iov, count) })
}
