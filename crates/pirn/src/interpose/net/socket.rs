//! `sys/socket.h`.
//!
//! Sending and receiving try with `MSG_DONTWAIT`, which changes nothing that others could see.
//! `accept` and `connect` have no such flag; see there.

use crate::blocking::readiness::{self, Interest};
use crate::blocking::{self, fds, offload};
use crate::interpose::io::transfer::{is_ready, transfer_all};
use crate::interpose::registry::interposed;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno, SysResult, call};
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;
use core::ffi::{c_int, c_void};
use libc::{msghdr, size_t, sockaddr, socklen_t, ssize_t};

interposed! {
    family "Sockets" for Correctness;

    Parks by hand {
        recv, recvfrom, recvmsg, send, sendto, sendmsg,
        accept: "blocks the carrier if another process takes the connection at that moment", accept4,
        connect: "on a platform thread of its own where a Unix listener's queue is full",
    }
    Parks as {
        fn __send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t
            = send(fd, buffer, length, flags);
        fn __connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int
            = connect(fd, address, length);
    }
    Kernel by hand { socket, socketpair, setsockopt }
}

/// `socket`.
#[unsafe(no_mangle)]
pub extern "C" fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int {
    // SAFETY: no pointers.
    let result = unsafe { call!(libc::SYS_socket, domain, kind, protocol) };
    if let Ok(fd) = result {
        fds::created(fd as c_int, kind & libc::SOCK_NONBLOCK != 0);
    }
    sys::to_c(result) as c_int
}

/// `socketpair`.
///
/// # Safety
/// `pair` has room for two.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn socketpair(
    domain: c_int,
    kind: c_int,
    protocol: c_int,
    pair: *mut c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe { call!(libc::SYS_socketpair, domain, kind, protocol, pair) };
    if result.is_ok() {
        for i in 0..2 {
            // SAFETY: the kernel has written two.
            fds::created(unsafe { *pair.add(i) }, kind & libc::SOCK_NONBLOCK != 0);
        }
    }
    sys::to_c(result) as c_int
}

/// A receiving operation: `attempt(flags)` with and without `MSG_DONTWAIT`.
pub(super) fn receive(fd: c_int, flags: c_int, attempt: impl Fn(c_int) -> SysResult) -> SysResult {
    if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
        return attempt(flags);
    }
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_RCVTIMEO);
    readiness::blocking(fd, Interest::Read, deadline, || {
        attempt(flags | libc::MSG_DONTWAIT)
    })
}

/// A sending operation; `to` is the address it is sent to, if it is given one.
fn send_with(
    fd: c_int,
    flags: c_int,
    to: *const sockaddr,
    attempt: impl Fn(c_int) -> SysResult,
) -> SysResult {
    if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
        return attempt(flags);
    }
    // SAFETY: the caller of the interposed function passes a valid address, or null.
    if unsafe { to.as_ref() }.is_some_and(|to| c_int::from(to.sa_family) == libc::AF_UNIX) {
        return send_patiently(fd, || attempt(flags | libc::MSG_DONTWAIT));
    }
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_SNDTIMEO);
    readiness::blocking(fd, Interest::Write, deadline, || {
        attempt(flags | libc::MSG_DONTWAIT)
    })
}

/// Sends to a Unix socket by its address. When the addressee's queue is full no event tells when it
/// is not: the sender's own socket is writable all the time, and every failed attempt even reports
/// so anew.
fn send_patiently(fd: c_int, attempt: impl Fn() -> SysResult) -> SysResult {
    const LONGEST_NAP_NS: u64 = 20_000_000;
    let entry = fds::entry(fd);
    let mut deadline = None;
    let mut nap = 50_000;
    loop {
        match attempt() {
            Err(Errno(libc::EAGAIN)) if entry.is_none_or(|e| !e.is_nonblocking(fd)) => {}
            result => return result,
        }
        let deadline = *deadline.get_or_insert_with(|| match entry {
            Some(entry) => entry.deadline(fd, libc::SO_SNDTIMEO),
            None => Deadline::NEVER,
        });
        if deadline.has_passed() {
            return Err(Errno(libc::EAGAIN));
        }
        let until = Deadline::after_nanos(nap).min(deadline);
        if !blocking::sleep_until(until, Hearing::Always) {
            return Err(blocking::INTERRUPTED);
        }
        nap = (2 * nap).min(LONGEST_NAP_NS);
    }
}

/// `recv`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recv(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract.
    unsafe {
        recvfrom(
            fd,
            buffer,
            length,
            flags,
            core::ptr::null_mut(),
            core::ptr::null_mut(),
        )
    }
}

/// `recvfrom`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    let once = |done: usize| {
        receive(fd, flags, |flags| {
            // SAFETY: the caller's contract; `done` bytes of the buffer are full.
            unsafe {
                let rest = buffer.cast::<u8>().add(done);
                call!(
                    libc::SYS_recvfrom,
                    fd,
                    rest,
                    length - done,
                    flags,
                    address,
                    address_length
                )
            }
        })
    };
    const PEEK: c_int = libc::MSG_PEEK | libc::MSG_ERRQUEUE;
    let waits_for_all = flags & libc::MSG_WAITALL != 0 && flags & PEEK == 0;
    // MSG_WAITALL has no effect together with MSG_DONTWAIT: the loop is ours.
    sys::to_c(
        if waits_for_all && virtual_thread().is_some() && is_stream(fd) {
            transfer_all(length, once)
        } else {
            once(0)
        },
    )
}

fn is_stream(fd: c_int) -> bool {
    // SAFETY: the type is an int.
    let kind = unsafe { sys::socket_option::<c_int>(fd, libc::SO_TYPE) };
    kind == Ok(libc::SOCK_STREAM)
}

/// `recvmsg`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    // SAFETY: the caller's contract.
    let result = receive(fd, flags, |flags| unsafe {
        call!(libc::SYS_recvmsg, fd, message, flags)
    });
    if result.is_ok() {
        // SAFETY: the kernel has filled it in.
        unsafe { note_received_descriptors(message) };
    }
    sys::to_c(result)
}

/// Descriptors may come with a message, and be numbers that were somebody else's before.
pub(super) unsafe fn note_received_descriptors(message: *const msghdr) {
    // SAFETY: control messages as the kernel wrote them; the macros stay inside.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
                let data = libc::CMSG_DATA(header).cast::<c_int>();
                let bytes = control.cmsg_len - (data as usize - header as usize);
                for i in 0..bytes / size_of::<c_int>() {
                    fds::created_shared(data.add(i).read_unaligned());
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

/// `send`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn send(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
) -> ssize_t {
    // SAFETY: the caller's contract.
    unsafe { sendto(fd, buffer, length, flags, core::ptr::null(), 0) }
}

/// `sendto`: all of it, as a blocking send does.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    let once = |done: usize| {
        send_with(fd, flags, address, |flags| {
            // SAFETY: the caller's contract; `done` bytes of the buffer are sent.
            unsafe {
                let rest = buffer.cast::<u8>().add(done);
                call!(
                    libc::SYS_sendto,
                    fd,
                    rest,
                    length - done,
                    flags,
                    address,
                    address_length
                )
            }
        })
    };
    sys::to_c(
        if virtual_thread().is_some() && flags & libc::MSG_DONTWAIT == 0 {
            transfer_all(length, once)
        } else {
            once(0)
        },
    )
}

/// `sendmsg`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let once = |message: *const msghdr| {
        // SAFETY: the caller's contract.
        let to = unsafe { (*message).msg_name }.cast_const().cast();
        send_with(fd, flags, to, |flags| {
            // SAFETY: the caller's contract.
            unsafe { call!(libc::SYS_sendmsg, fd, message, flags) }
        })
    };
    let first = once(message);
    if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
        return sys::to_c(first);
    }
    let Ok(sent) = first else {
        return sys::to_c(first);
    };
    // SAFETY: the caller's buffers.
    let all = unsafe {
        let message = &*message;
        if message.msg_iovlen == 0 {
            &[]
        } else {
            core::slice::from_raw_parts(message.msg_iov, message.msg_iovlen)
        }
    };
    let total: usize = all.iter().map(|v| v.iov_len).sum();
    if sent >= total {
        return sent as ssize_t;
    }
    // A stream took a part: the rest, without the control data, which went with the first byte.
    let rest = transfer_all(total - sent, |done| {
        let mut buffers = crate::interpose::io::transfer::after(all, sent + done);
        // SAFETY: a plain structure of pointers and lengths.
        let mut message: msghdr = unsafe { core::mem::zeroed() };
        message.msg_iov = buffers.as_mut_ptr();
        message.msg_iovlen = buffers.len();
        once(&message)
    });
    sys::to_c(Ok(sent + rest.unwrap_or(0)))
}

/// `accept`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { accept4(fd, address, length, 0) }
}

/// `accept4`.
///
/// The kernel has no flag for "accept, but do not wait" other than `O_NONBLOCK`, which belongs to
/// the open file and would be seen by every process that shares it. Instead all threads of this
/// process, platform threads too, accept one at a time per listener, and only after `poll` has said
/// that a connection is there. What remains is another *process* that shares the listener and takes
/// the connection in between: then the carrier waits for the next one.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn accept4(
    fd: c_int,
    address: *mut sockaddr,
    length: *mut socklen_t,
    flags: c_int,
) -> c_int {
    // SAFETY: the caller's contract.
    let kernel = || unsafe { call!(libc::SYS_accept4, fd, address, length, flags) };
    let attempt = |entry: &fds::Entry| {
        let _one_at_a_time = entry.accepting.lock();
        if is_ready(fd, libc::POLLIN) {
            kernel()
        } else {
            Err(Errno(libc::EAGAIN))
        }
    };
    let result = match fds::entry(fd) {
        Some(entry) if crate::runtime::is_started() && !entry.is_nonblocking(fd) => {
            if virtual_thread().is_some() {
                let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_RCVTIMEO);
                readiness::blocking(fd, Interest::Read, deadline, || attempt(entry))
            } else {
                accept_on_platform(fd, entry, || attempt(entry))
            }
        }
        _ => kernel(),
    };
    if let Ok(new) = result {
        fds::created(new as c_int, flags & libc::SOCK_NONBLOCK != 0);
    }
    sys::to_c(result) as c_int
}

fn accept_on_platform(fd: c_int, entry: &fds::Entry, attempt: impl Fn() -> SysResult) -> SysResult {
    let deadline = entry.deadline(fd, libc::SO_RCVTIMEO);
    loop {
        match attempt() {
            Err(Errno(libc::EAGAIN)) => {}
            result => return result,
        }
        let left = (!deadline.is_never()).then(|| sys::timespec(deadline.left()));
        let left = left
            .as_ref()
            .map_or(core::ptr::null(), |t| t as *const libc::timespec);
        let mut poll = libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        };
        // SAFETY: one pollfd, and a timespec or null.
        if unsafe { call!(libc::SYS_ppoll, &raw mut poll, 1, left, 0, 0)? } == 0 {
            return Err(Errno(libc::EAGAIN));
        }
        if poll.revents & libc::POLLNVAL != 0 {
            return Err(Errno(libc::EBADF));
        }
    }
}

/// `connect`.
///
/// On a blocking socket the flag `O_NONBLOCK` is set for the duration of one system call: a
/// socket that is not connected yet is rarely anybody else's.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn connect(fd: c_int, address: *const sockaddr, length: socklen_t) -> c_int {
    // SAFETY: the caller's contract, here and below.
    let kernel = move || unsafe { call!(libc::SYS_connect, fd, address, length) };
    let result = match fds::entry(fd) {
        Some(entry) if virtual_thread().is_some() && !entry.is_nonblocking(fd) => {
            match without_waiting(fd, kernel) {
                Err(Errno(libc::EINPROGRESS)) => finish_connect(fd),
                // A Unix socket whose listener's queue is full: no event will tell when it is not.
                Err(Errno(libc::EAGAIN)) => offload::dedicated(kernel),
                result => result,
            }
        }
        _ => kernel(),
    };
    sys::to_c(result) as c_int
}

/// Runs a system call while the descriptor is non-blocking.
fn without_waiting(fd: c_int, f: impl FnOnce() -> SysResult) -> SysResult {
    let flags = sys::status_flags(fd)?;
    // SAFETY: no pointers.
    let set = |flags: c_int| unsafe { call!(libc::SYS_fcntl, fd, libc::F_SETFL, flags) };
    set(flags | libc::O_NONBLOCK)?;
    let result = f();
    let _ = set(flags);
    result
}

/// Waits for a connection under way. A timeout (`SO_SNDTIMEO`) is `EINPROGRESS`, as in the kernel.
fn finish_connect(fd: c_int) -> SysResult {
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_SNDTIMEO);
    let ready = readiness::blocking(fd, Interest::Write, deadline, || {
        if is_ready(fd, libc::POLLOUT) {
            Ok(0)
        } else {
            Err(Errno(libc::EAGAIN))
        }
    });
    match ready {
        Err(Errno(libc::EAGAIN)) => return Err(Errno(libc::EINPROGRESS)),
        result => result?,
    };
    // SAFETY: the error is an int.
    match unsafe { sys::socket_option::<c_int>(fd, libc::SO_ERROR)? } {
        0 => Ok(0),
        error => Err(Errno(error)),
    }
}

/// `setsockopt`: notes that there are timeouts.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    if level == libc::SOL_SOCKET && matches!(option, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) {
        fds::timeouts_set(fd);
    }
    // SAFETY: the caller's contract.
    sys::to_c(unsafe { call!(libc::SYS_setsockopt, fd, level, option, value, length) }) as c_int
}
