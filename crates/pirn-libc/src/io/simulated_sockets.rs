//! Reads and writes of simulated sockets: what is not the kernel's.

use crate::io::pieces;
use crate::simulated::{Network, network};
use core::ffi::c_int;
use libc::{iovec, msghdr};
use pirn_rt::blocking::fds;
use pirn_rt::blocking::fds::readiness::{FdCall, Interest};
use pirn_rt::sys::{Errno, SysResult, call};

/// Receives from a simulated socket. `then` is told of the message's results.
///
/// # Safety
/// As for `recvmsg(2)`.
#[inline(always)]
pub(crate) unsafe fn receive(
    fd: c_int,
    message: impl FnOnce() -> msghdr,
    flags: c_int,
    then: impl FnOnce(&msghdr),
) -> Option<SysResult> {
    let network = network()?;
    // SAFETY: the caller's contract.
    unsafe { receive_here(network, fd, message, flags, then) }
}

/// Not inlined, as [`send_here`]: the stack frame of threads outside is so as small as before.
///
/// # Safety
/// As for [`receive`].
#[cold]
#[inline(never)]
unsafe fn receive_here(
    network: &dyn Network,
    fd: c_int,
    message: impl FnOnce() -> msghdr,
    flags: c_int,
    then: impl FnOnce(&msghdr),
) -> Option<SysResult> {
    let has_datagrams = network.has_datagrams(fd)?;
    let mut message = message();
    // SAFETY: the caller's contract.
    let result = unsafe { receive_from(network, fd, &mut message, flags, has_datagrams) };
    if result.is_ok() {
        then(&message);
    }
    Some(result)
}

/// # Safety
/// As for [`receive`].
unsafe fn receive_from(
    network: &dyn Network,
    fd: c_int,
    message: &mut msghdr,
    flags: c_int,
    has_datagrams: bool,
) -> SysResult {
    let now = flags | libc::MSG_DONTWAIT;
    if flags & libc::MSG_ERRQUEUE != 0 {
        return Err(Errno(libc::EAGAIN));
    }
    let attempt = |message: &mut msghdr| {
        let result = match has_datagrams {
            // SAFETY: the caller's contract.
            true => unsafe { network.receive(fd, message, now) },
            // SAFETY: the caller's contract.
            false => unsafe { call!(libc::SYS_recvmsg, fd, &raw mut *message, now) },
        };
        match result {
            Err(Errno(libc::EAGAIN)) if fds::is_shut(fd) => Ok(0),
            result => result,
        }
    };
    if has_datagrams {
        return match flags & libc::MSG_DONTWAIT {
            0 => FdCall::new(fd, Interest::Read).run(|| attempt(message)),
            _ => attempt(message),
        };
    }
    // SAFETY: the caller's contract.
    let buffers = unsafe { pieces::buffers(message) };
    let length = buffers.iter().map(|it| it.iov_len).sum();
    let mut first = [iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: 0,
    }];
    let part = network.begin(fd, Interest::Read, length)?;
    // A part of it is a part of the first buffer.
    if part < length
        && let Some(buffer) = buffers.iter().find(|it| it.iov_len > 0)
    {
        first[0] = iovec {
            iov_len: part.min(buffer.iov_len),
            ..*buffer
        };
        (message.msg_iov, message.msg_iovlen) = (first.as_mut_ptr(), 1);
    }
    let result = match pieces::least_of_message(fd, message, flags) {
        0 | 1 if flags & libc::MSG_DONTWAIT != 0 => attempt(message),
        0 | 1 => FdCall::new(fd, Interest::Read).run(|| attempt(message)),
        // SAFETY: the caller's contract.
        least => unsafe { pieces::receive(fd, message, flags, least) },
    };
    match length {
        0 => result,
        _ => network.outcome(fd, result),
    }
}

/// Sends by `kernel`, which is told how many bytes, or a datagram by a simulated socket.
///
/// # Safety
/// As for `sendmsg(2)`.
#[inline(always)]
pub(crate) unsafe fn send(
    fd: c_int,
    length: usize,
    message: impl FnOnce() -> msghdr,
    kernel: impl FnOnce(usize) -> SysResult,
) -> SysResult {
    match network() {
        None => kernel(length),
        // SAFETY: the caller's contract.
        Some(network) => unsafe { send_here(network, fd, length, message, kernel) },
    }
}

/// # Safety
/// As for [`send`].
#[cold]
#[inline(never)]
unsafe fn send_here(
    network: &dyn Network,
    fd: c_int,
    length: usize,
    message: impl FnOnce() -> msghdr,
    kernel: impl FnOnce(usize) -> SysResult,
) -> SysResult {
    match network.has_datagrams(fd) {
        None => kernel(length),
        // SAFETY: the caller's contract.
        Some(true) => unsafe { network.send(fd, &message()) },
        Some(false) => match network.begin(fd, Interest::Write, length) {
            Ok(part) => network.outcome(fd, kernel(part)),
            Err(error) => Err(error),
        },
    }
}

/// Returns whether this is a simulated socket for datagrams.
pub(crate) fn has_datagrams(fd: c_int) -> bool {
    network().and_then(|it| it.has_datagrams(fd)) == Some(true)
}

/// Returns the size of the datagram that a simulated socket receives next; 0: the queue is empty.
/// `None`: it is no such socket.
pub(crate) fn next_datagram(fd: c_int) -> Option<c_int> {
    if !has_datagrams(fd) {
        return None;
    }
    const LOOK: c_int = libc::MSG_PEEK | libc::MSG_TRUNC | libc::MSG_DONTWAIT;
    let message = || pieces::message_of(core::ptr::null(), 0);
    // SAFETY: a message without buffers.
    let size = unsafe { receive(fd, message, LOOK, |_| ()) };
    size.map(|it| it.map_or(0, |it| it as c_int))
}
