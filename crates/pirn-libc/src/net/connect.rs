//! `accept` and `connect`, for which the kernel has no flag "do not wait" other than `O_NONBLOCK`.
//!
//! On a listener that flag belongs to the open file, and would be seen by every process that shares
//! it. Instead all threads of this process, platform threads too, accept one at a time per
//! listener, and only after `poll` has reported a connection. One case remains: another *process*
//! that shares the listener takes the connection in between; then the carrier waits for the next
//! one.
//!
//! A socket that is not connected yet is rarely shared, so on a blocking one the flag is
//! [set](status_flags::lend) for the duration of one `connect`. Datagram sockets, which several
//! threads may use at the same time, never wait in `connect`, so their flags are left alone.

use crate::io::transfer::is_ready;
use crate::simulated::network;
use crate::{cancel, virtual_thread};
use core::ffi::c_int;
use core::ptr;
use libc::{sockaddr, socklen_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds::readiness::{self, FdCall, Interest};
use pirn_rt::blocking::fds::{self, status_flags};
use pirn_rt::blocking::retry::Retry;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched;
use pirn_rt::sys::{self, Errno, SysResult, call, socket_option};
use pirn_rt::vthread::wait_word::Interruptible;

#[libc_fn]
pub unsafe fn accept(fd: c_int, address: *mut sockaddr, length: *mut socklen_t) -> c_int {
    accept4(fd, address, length, 0)
}

#[libc_fn]
pub unsafe fn accept4(
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
    let timed = |entry: &fds::Entry| !entry.deadline(fd, Interest::Read).is_never();
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
    let simulated = match network() {
        None => None,
        Some(network) => match network.listens(fd) {
            Ok(listens) => listens.then_some(network),
            Err(error) => return sys::to_c(Err(error)) as c_int,
        },
    };
    let [to, size] = match simulated {
        Some(_) => [ptr::null_mut(), ptr::null_mut()],
        None => [address.cast::<u8>(), length.cast()],
    };
    // SAFETY: the caller's contract.
    let kernel = || unsafe { call!(libc::SYS_accept4, fd, to, size, flags) };
    let attempt = |entry: &fds::Entry| {
        let _serial = entry.serialise();
        if is_ready(fd, libc::POLLIN) || !may_wait(fd, flags) {
            kernel()
        } else {
            Err(Errno(libc::EAGAIN))
        }
    };
    let result = match fds::entry(fd) {
        Some(entry) if pirn_rt::sched::runtime::is_started() => {
            if virtual_thread().is_some() {
                FdCall::new(fd, Interest::Read).run(|| attempt(entry))
            } else {
                accept_on_platform(fd, entry, || attempt(entry))
            }
        }
        _ => kernel(),
    };
    match result {
        Ok(new) => {
            fds::accepted(fd, new as c_int);
            if let Some(network) = simulated {
                // SAFETY: the caller's contract.
                unsafe { network.accepted(fd, new as c_int, address, length) };
            }
            CALLERS.chance(); // The queue of a Unix listener may have room.
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
    let deadline = entry.deadline(fd, Interest::Read);
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

/// The threads that wait for room in the queue of a Unix listener: no event reports it.
static CALLERS: Retry = Retry::new(50_000);

#[libc_fn]
pub unsafe fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
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
    let network = network();
    // SAFETY: the caller's contract.
    let kernel = || unsafe {
        match network.and_then(|it| it.connect(fd, address, length)) {
            Some(result) => result,
            None => call!(libc::SYS_connect, fd, address, length),
        }
    };
    let waits = virtual_thread().is_some() && is_connected_by_handshake(fd);
    let result = match fds::entry(fd) {
        Some(entry) if waits && !status_flags::is_nonblocking(fd) => {
            match status_flags::lend(entry, fd, kernel) {
                // `EALREADY`: an earlier call that did not wait has begun it.
                Err(begun @ Errno(libc::EINPROGRESS | libc::EALREADY)) => finish(fd, begun, kernel),
                Err(Errno(libc::EAGAIN)) => {
                    let deadline = entry.deadline(fd, Interest::Write);
                    let room = readiness::wait_for(fd, Interest::Write);
                    CALLERS.until(room, deadline, Interruptible::Always, || {
                        status_flags::lend(entry, fd, kernel)
                    })
                }
                result => result,
            }
        }
        _ => kernel(),
    };
    sys::to_c(match network {
        Some(network) if result.is_ok() => network.connected(fd),
        _ => result,
    }) as c_int
}

/// Returns whether connecting a socket needs the other side's answer.
fn is_connected_by_handshake(fd: c_int) -> bool {
    // SAFETY: the type is an int.
    unsafe { socket_option::<c_int>(fd, libc::SO_TYPE) }
        .is_ok_and(|kind| !matches!(kind, libc::SOCK_DGRAM | libc::SOCK_RAW | libc::SOCK_RDM))
}

/// Waits until the connection that has `begun` is made or refused, and asks for the result by
/// another `connect`: that ends the attempt for the kernel, and does not wait any more. The result
/// after a time limit (`SO_SNDTIMEO`) is the first call's.
fn finish(fd: c_int, begun: Errno, kernel: impl Fn() -> SysResult) -> SysResult {
    match FdCall::new(fd, Interest::Write).run(|| match is_ready(fd, libc::POLLOUT) {
        true => Ok(0),
        false => Err(Errno(libc::EAGAIN)),
    }) {
        Err(Errno(libc::EAGAIN)) => return Err(begun),
        result => result?,
    };
    match kernel() {
        Err(Errno(libc::EISCONN)) => Ok(0), // Another thread has asked first.
        result => result,
    }
}
