//! The checked variants of functions that `_FORTIFY_SOURCE` makes programs call; shared libraries
//! are built with it. If the buffer is too small for the length, glibc aborts; so do these.

use crate::io::{poll, rw, transfer};
use crate::registry::interposed;
use core::ffi::{c_int, c_void};
use libc::{nfds_t, off_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

interposed! {
    family "Checked variants" for Scaling;

    Parks as {
        fn __read_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t) -> ssize_t
            = checked(length, room, || rw::read(fd, buffer, length));
        fn __recv_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int)
            -> ssize_t = checked(length, room, || libc::recv(fd, buffer, length, flags));
        fn __recvfrom_chk(
            fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int,
            address: *mut sockaddr, address_length: *mut socklen_t,
        ) -> ssize_t = checked(length, room, || {
            libc::recvfrom(fd, buffer, length, flags, address, address_length)
        });
        fn __poll_chk(fds: *mut pollfd, count: nfds_t, timeout: c_int, room: size_t) -> c_int
            = checked(count as usize, room / POLLFD, || poll::poll(fds, count, timeout));
        fn __ppoll_chk(
            fds: *mut pollfd, count: nfds_t, timeout: *const timespec, mask: *const sigset_t,
            room: size_t,
        ) -> c_int
            = checked(count as usize, room / POLLFD, || poll::ppoll(fds, count, timeout, mask));
    }
    Glance as {
        fn __pread_chk(
            fd: c_int, buffer: *mut c_void, length: size_t, offset: off_t, room: size_t,
        ) -> ssize_t = checked(length, room, || transfer::pread(fd, buffer, length, offset));
        fn __pread64_chk(
            fd: c_int, buffer: *mut c_void, length: size_t, offset: off_t, room: size_t,
        ) -> ssize_t = checked(length, room, || transfer::pread(fd, buffer, length, offset));
    }
}

const POLLFD: usize = size_of::<pollfd>();

/// Runs a call if its buffer has room for `wanted` bytes, and aborts otherwise.
fn checked<R>(wanted: usize, room: usize, call: impl FnOnce() -> R) -> R {
    if wanted > room {
        pirn_rt::sys::fatal(&["buffer overflow detected in a call of a libc function"]);
    }
    call()
}
