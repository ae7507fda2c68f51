//! `connect`.
//!
//! The kernel has no flag for "connect, but do not wait" other than `O_NONBLOCK`. On a blocking
//! socket that flag is [set](status_flags::lend) for the duration of one system call: a socket that
//! is not connected yet is rarely shared. Datagram sockets, which several threads may use at the
//! same time, never wait in `connect`, so they are left as they are.

use crate::io::transfer::is_ready;
use crate::{cancel, virtual_thread};
use core::ffi::c_int;
use libc::{sockaddr, socklen_t};
use pirn_rt::blocking::fds::readiness::{self, Interest};
use pirn_rt::blocking::fds::{self, status_flags};
use pirn_rt::blocking::retry::Retry;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread::awaited::Awaited;
use pirn_rt::vthread::wait_word::Hearing;

/// The threads that wait for room in the queue of a Unix listener: no event reports it.
static CALLERS: Retry = Retry::new(50_000);

/// Notes that a connection has been accepted: the queue of some listener may have room.
pub(super) fn queue_has_room() {
    CALLERS.chance();
}

/// `connect`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn connect(
    fd: c_int,
    address: *const sockaddr,
    length: socklen_t,
) -> c_int {
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let ours = move || connect_once(fd, address, length);
        cancel::point(ours, ours)
    }
}

/// Connects a socket.
///
/// # Safety
/// As for `connect`.
unsafe fn connect_once(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's contract.
    let kernel = || unsafe { call!(libc::SYS_connect, fd, address, length) };
    let waits = virtual_thread().is_some() && is_connected_by_handshake(fd);
    sys::to_c(match fds::entry(fd) {
        Some(entry) if waits && !status_flags::is_nonblocking(fd) => {
            match status_flags::lend(entry, fd, kernel) {
                // `EALREADY`: an earlier call that did not wait has begun it.
                Err(begun @ Errno(libc::EINPROGRESS | libc::EALREADY)) => finish(fd, begun, kernel),
                Err(Errno(libc::EAGAIN)) => {
                    let deadline = entry.deadline(fd, libc::SO_SNDTIMEO);
                    let room = Awaited::ready(fd, Interest::Write);
                    CALLERS.until(room, deadline, Some(Hearing::Always), || {
                        status_flags::lend(entry, fd, kernel)
                    })
                }
                result => result,
            }
        }
        _ => kernel(),
    }) as c_int
}

/// Returns whether connecting a socket needs the other side's answer.
fn is_connected_by_handshake(fd: c_int) -> bool {
    // SAFETY: the type is an int.
    unsafe { sys::socket_option::<c_int>(fd, libc::SO_TYPE) }
        .is_ok_and(|kind| !matches!(kind, libc::SOCK_DGRAM | libc::SOCK_RAW | libc::SOCK_RDM))
}

/// Waits until the connection that has `begun` is made or refused, and asks for the result by
/// another `connect`: that ends the attempt for the kernel, and does not wait any more. The result
/// after a time limit (`SO_SNDTIMEO`) is the same as that of the first call.
fn finish(fd: c_int, begun: Errno, kernel: impl Fn() -> SysResult) -> SysResult {
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_SNDTIMEO);
    let ended = readiness::blocking(fd, Interest::Write, deadline, || {
        if is_ready(fd, libc::POLLOUT) {
            Ok(0)
        } else {
            Err(Errno(libc::EAGAIN))
        }
    });
    match ended {
        Err(Errno(libc::EAGAIN)) => return Err(begun),
        result => result?,
    };
    match kernel() {
        Err(Errno(libc::EISCONN)) => Ok(0), // Another thread has asked first.
        result => result,
    }
}
