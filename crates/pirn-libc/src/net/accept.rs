//! `accept`.
//!
//! The kernel has no flag for "accept, but do not wait" other than `O_NONBLOCK`, which belongs to
//! the open file and would be seen by every process that shares it. Instead all threads of this
//! process, platform threads too, accept one at a time per listener, and only after `poll` has
//! reported a connection. One case remains: another *process* that shares the listener takes the
//! connection in between; then the carrier waits for the next one.

use crate::io::transfer::is_ready;
use crate::net::connect;
use crate::{cancel, virtual_thread};
use core::ffi::c_int;
use libc::{sockaddr, socklen_t};
use pirn_rt::blocking::fds::readiness::{self, Interest};
use pirn_rt::blocking::fds::{self, status_flags};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched;
use pirn_rt::sys::socket_option;
use pirn_rt::sys::{self, Errno, SysResult, call};

/// `accept`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { accept4(fd, address, length, 0) }
}

/// `accept4`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let ours = move || accept_once(fd, address, length, flags);
        let libcs = move || {
            wait_cancellably(fd);
            ours()
        };
        cancel::point(libcs, ours)
    }
}

/// Waits, on a platform thread that may be cancelled, until there is a connection.
///
/// # Safety
/// As for [`cancel::point`].
unsafe fn wait_cancellably(fd: c_int) {
    let timed = |entry: &fds::Entry| !entry.deadline(fd, libc::SO_RCVTIMEO).is_never();
    if !status_flags::is_nonblocking(fd) && !fds::entry(fd).is_some_and(timed) {
        let mut entry = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        let (fds, count, timeout) = (&raw mut entry, 1, -1);
        // SAFETY: one entry; the caller's contract.
        unsafe {
            real!(
                unwinding fn poll(
                    fds: *mut libc::pollfd, count: libc::nfds_t, timeout: c_int
                ) -> c_int
            )
        };
    }
}

/// Accepts a connection.
///
/// # Safety
/// As for `accept4`.
unsafe fn accept_once(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    let kernel = || unsafe { call!(libc::SYS_accept4, fd, address, length, flags) };
    let attempt = |entry: &fds::Entry| {
        let _one_at_a_time = entry.take_turn();
        if is_ready(fd, libc::POLLIN) || !may_wait(fd, flags) {
            kernel()
        } else {
            Err(Errno(libc::EAGAIN))
        }
    };
    let result = match fds::entry(fd) {
        Some(entry) if pirn_rt::runtime::is_started() => {
            if virtual_thread().is_some() {
                let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_RCVTIMEO);
                readiness::blocking(fd, Interest::Read, deadline, || attempt(entry))
            } else {
                accept_on_platform(fd, entry, || attempt(entry))
            }
        }
        _ => kernel(),
    };
    match result {
        Ok(new) => {
            fds::accepted(fd, new as c_int);
            connect::queue_has_room();
        }
        Err(e) => let_others_close(e),
    }
    sys::to_c(result) as c_int
}

/// Lets other threads run if there is no room for another descriptor. Otherwise a server that tries
/// again at once would keep its carrier from the threads that are about to close one.
fn let_others_close(error: Errno) {
    const FULL: [c_int; 4] = [libc::EMFILE, libc::ENFILE, libc::ENOBUFS, libc::ENOMEM];
    if FULL.contains(&error.0)
        && let Some(thread) = virtual_thread()
    {
        sched::yield_now(thread);
    }
}

/// Returns whether the kernel might wait. It first refuses unknown flags, and a socket that is not
/// a listener.
fn may_wait(fd: c_int, flags: c_int) -> bool {
    const KNOWN: c_int = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: the option is an int.
    flags & !KNOWN == 0 && unsafe { socket_option(fd, libc::SO_ACCEPTCONN) } == Ok(1 as c_int)
}

fn accept_on_platform(fd: c_int, entry: &fds::Entry, attempt: impl Fn() -> SysResult) -> SysResult {
    let deadline = entry.deadline(fd, libc::SO_RCVTIMEO);
    loop {
        match attempt() {
            Err(Errno(libc::EAGAIN)) if !status_flags::is_nonblocking(fd) => {}
            result => return result,
        }
        let events = sys::poll_for(fd, libc::POLLIN, deadline)?;
        if events & libc::POLLNVAL != 0 {
            return Err(Errno(libc::EBADF));
        }
        if events == 0 && deadline.has_passed() {
            return Err(Errno(libc::EAGAIN));
        }
    }
}
