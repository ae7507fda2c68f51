//! The checked variants that `_FORTIFY_SOURCE` makes of some functions: shared libraries are
//! built with it, and call these names instead. A buffer too small for the length is a bug that
//! glibc answers by aborting; so does this.

use super::{poll, rw, transfer};
use crate::interpose::net::socket;
use core::ffi::{c_int, c_void};
use libc::{nfds_t, off_t, pollfd, sigset_t, size_t, sockaddr, socklen_t, ssize_t, timespec};

fn check(wanted: usize, room: usize) {
    if wanted > room {
        crate::sys::fatal(&["buffer overflow detected in a call of a libc function"]);
    }
}

/// `read`, checked.
///
/// # Safety
/// As for `read`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __read_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
) -> ssize_t {
    check(length, room);
    // SAFETY: the caller's contract.
    unsafe { rw::read(fd, buffer, length) }
}

/// `pread`, checked.
///
/// # Safety
/// As for `pread`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __pread_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off_t,
    room: size_t,
) -> ssize_t {
    check(length, room);
    // SAFETY: the caller's contract.
    unsafe { transfer::pread(fd, buffer, length, offset) }
}

/// `pread64`, checked.
///
/// # Safety
/// As for `pread64`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __pread64_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    offset: off_t,
    room: size_t,
) -> ssize_t {
    // SAFETY: the caller's contract.
    unsafe { __pread_chk(fd, buffer, length, offset, room) }
}

/// `recv`, checked.
///
/// # Safety
/// As for `recv`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recv_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
) -> ssize_t {
    check(length, room);
    // SAFETY: the caller's contract.
    unsafe { socket::recv(fd, buffer, length, flags) }
}

/// `recvfrom`, checked.
///
/// # Safety
/// As for `recvfrom`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __recvfrom_chk(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    room: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    check(length, room);
    // SAFETY: the caller's contract.
    unsafe { socket::recvfrom(fd, buffer, length, flags, address, address_length) }
}

/// `poll`, checked.
///
/// # Safety
/// As for `poll`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __poll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: c_int,
    room: size_t,
) -> c_int {
    check(count as usize, room / size_of::<pollfd>());
    // SAFETY: the caller's contract.
    unsafe { poll::poll(fds, count, timeout) }
}

/// `ppoll`, checked.
///
/// # Safety
/// As for `ppoll`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __ppoll_chk(
    fds: *mut pollfd,
    count: nfds_t,
    timeout: *const timespec,
    mask: *const sigset_t,
    room: size_t,
) -> c_int {
    check(count as usize, room / size_of::<pollfd>());
    // SAFETY: the caller's contract.
    unsafe { poll::ppoll(fds, count, timeout, mask) }
}
