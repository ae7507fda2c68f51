//! `sys/socket.h`.
//!
//! Sending and receiving try with `MSG_DONTWAIT`, which has no effect that others could see.
//! [`accept`](super::accept) and [`connect`](super::connect) have no such flag.

pub(in crate::interpose) use super::accept::{accept, accept4};
pub(in crate::interpose) use super::connect::connect;
use crate::blocking::readiness::{self, Interest};
use crate::blocking::retry::Retry;
use crate::blocking::{fds, status_flags};
use crate::glibc::symbols::real;
use crate::interpose::io::transfer::{after, transfer_all};
use crate::interpose::registry::interposed;
use crate::interpose::thread::cancel;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno, SysResult, call};
use crate::vthread::awaited::Awaited;
use crate::vthread::wait_word::Hearing;
use core::ffi::{c_int, c_void};
use libc::{msghdr, sa_family_t, size_t, sockaddr, socklen_t, ssize_t};

interposed! {
    family "Sockets" for Correctness;

    Parks by hand {
        recv, recvfrom, recvmsg, send, sendto, sendmsg,
        accept: "blocks the carrier if another process takes the connection at that moment", accept4,
        connect: "tries again every 20 ms or so where a Unix listener's queue is full",
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
        fds::created(fd as c_int);
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
            fds::created(unsafe { *pair.add(i) });
        }
    }
    sys::to_c(result) as c_int
}

/// Performs a receiving operation: `attempt(flags)` with and without `MSG_DONTWAIT`.
pub(super) fn receive(fd: c_int, flags: c_int, attempt: impl Fn(c_int) -> SysResult) -> SysResult {
    if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
        return attempt(flags);
    }
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_RCVTIMEO);
    let attempt = || attempt(flags | libc::MSG_DONTWAIT);
    readiness::blocking(fd, Interest::Read, deadline, attempt)
}

/// Receives up to `wanted` bytes without any flag; see [`receive`].
fn receive_plainly(fd: c_int, wanted: usize, attempt: impl Fn(c_int) -> SysResult) -> SysResult {
    if virtual_thread().is_none() {
        return attempt(0);
    }
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_RCVTIMEO);
    readiness::reading(fd, || wanted, deadline, || attempt(libc::MSG_DONTWAIT))
}

/// Performs a sending operation without an address.
fn send_with(fd: c_int, flags: c_int, attempt: impl Fn(c_int) -> SysResult) -> SysResult {
    if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
        return attempt(flags);
    }
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_SNDTIMEO);
    readiness::blocking(fd, Interest::Write, deadline, || {
        attempt(flags | libc::MSG_DONTWAIT)
    })
}

/// Performs a sending operation with an address of the family that `family` returns. It is called
/// only after an attempt, in which the kernel has checked the address.
fn send_to(
    fd: c_int,
    flags: c_int,
    family: impl FnOnce() -> Option<sa_family_t>,
    attempt: impl Fn(c_int) -> SysResult,
) -> SysResult {
    let first = attempt(flags | libc::MSG_DONTWAIT);
    if first != Err(Errno(libc::EAGAIN)) {
        return first;
    }
    match family() {
        Some(family) if c_int::from(family) == libc::AF_UNIX => {
            send_patiently(fd, || attempt(flags | libc::MSG_DONTWAIT))
        }
        _ => send_with(fd, flags, attempt),
    }
}

/// Sends to a Unix socket by its address. When the addressee's queue is full, no event tells when
/// it has room: the sender's own socket is always writable, and every failed attempt even reports
/// that as a new event.
fn send_patiently(fd: c_int, attempt: impl Fn() -> SysResult) -> SysResult {
    static SENDERS: Retry = Retry::new(50_000);
    if status_flags::is_nonblocking(fd) {
        return Err(Errno(libc::EAGAIN));
    }
    let deadline = fds::deadline(fd, libc::SO_SNDTIMEO);
    let room = Awaited::ready(fd, Interest::Write);
    SENDERS.until(room, deadline, Some(Hearing::Always), attempt)
}

/// `recv`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recv(
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
pub unsafe extern "C-unwind" fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    let ours = move || {
        let kernel = |done: usize, flags: c_int| {
            // SAFETY: the caller's contract; `done` bytes of the buffer are full.
            unsafe {
                let rest = buffer.cast::<u8>().add(done);
                let left = length - done;
                call!(
                    libc::SYS_recvfrom,
                    fd,
                    rest,
                    left,
                    flags,
                    address,
                    address_length
                )
            }
        };
        if flags == 0 {
            return sys::to_c(receive_plainly(fd, length, |flags| kernel(0, flags)));
        }
        let once = |done: usize| receive(fd, flags, |flags| kernel(done, flags));
        const PEEK: c_int = libc::MSG_PEEK | libc::MSG_ERRQUEUE;
        let waits_for_all = flags & libc::MSG_WAITALL != 0 && flags & PEEK == 0;
        // MSG_WAITALL has no effect together with MSG_DONTWAIT, so this loop replaces it.
        sys::to_c(
            if waits_for_all && virtual_thread().is_some() && is_stream(fd) {
                transfer_all(length, once)
            } else {
                once(0)
            },
        )
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn recvfrom(
                    fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int,
                    address: *mut sockaddr, address_length: *mut socklen_t
                ) -> ssize_t
            )
        };
        cancel::point(libcs, ours)
    }
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
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let ours = move || {
        // SAFETY: the caller's contract.
        let result = receive(fd, flags, |flags| unsafe {
            call!(libc::SYS_recvmsg, fd, message, flags)
        });
        if result.is_ok() {
            // SAFETY: the kernel has filled it in.
            unsafe { note_received_descriptors(message) };
        }
        sys::to_c(result)
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn recvmsg(
                    fd: c_int, message: *mut msghdr, flags: c_int
                ) -> ssize_t
            )
        };
        cancel::point(libcs, ours)
    }
}

/// Notes descriptors that came with a message. Their numbers may have been in use before.
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
pub unsafe extern "C-unwind" fn send(
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
pub unsafe extern "C-unwind" fn sendto(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    let ours = move || {
        let kernel = |done: usize, flags: c_int| {
            // SAFETY: the caller's contract; `done` bytes of the buffer are sent.
            unsafe {
                let rest = buffer.cast::<u8>().add(done);
                let left = length - done;
                call!(
                    libc::SYS_sendto,
                    fd,
                    rest,
                    left,
                    flags,
                    address,
                    address_length
                )
            }
        };
        if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
            return sys::to_c(kernel(0, flags));
        }
        sys::to_c(transfer_all(length, |done| {
            let attempt = |flags: c_int| kernel(done, flags);
            if address.is_null() {
                return send_with(fd, flags, attempt);
            }
            // SAFETY: the kernel has read the address.
            let family = || unsafe { family(address, address_length) };
            send_to(fd, flags, family, attempt)
        }))
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn sendto(
                    fd: c_int, buffer: *const c_void, length: size_t, flags: c_int,
                    address: *const sockaddr, address_length: socklen_t
                ) -> ssize_t
            )
        };
        cancel::point(libcs, ours)
    }
}

/// Returns the family of an address that is long enough to have one.
///
/// # Safety
/// The address is as long as `length`.
unsafe fn family(address: *const sockaddr, length: socklen_t) -> Option<sa_family_t> {
    let present = !address.is_null() && length as usize >= size_of::<sa_family_t>();
    // SAFETY: the family comes first.
    present.then(|| unsafe { address.cast::<sa_family_t>().read_unaligned() })
}

/// `sendmsg`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmsg(
    fd: c_int,
    message: *const msghdr,
    flags: c_int,
) -> ssize_t {
    let ours = move || {
        // SAFETY: the caller's contract.
        let kernel = |flags: c_int| unsafe { call!(libc::SYS_sendmsg, fd, message, flags) };
        if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
            return sys::to_c(kernel(flags));
        }
        // SAFETY: the kernel has read the message, and the address in it.
        let family = || unsafe { family((*message).msg_name.cast(), (*message).msg_namelen) };
        sys::to_c(match send_to(fd, flags, family, kernel) {
            // SAFETY: the kernel has taken this much of the message.
            Ok(sent) => Ok(sent + unsafe { send_rest(fd, &*message, flags, sent) }),
            result => result,
        })
    };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe {
        let libcs = move || {
            real!(
                unwinding fn sendmsg(
                    fd: c_int, message: *const msghdr, flags: c_int
                ) -> ssize_t
            )
        };
        cancel::point(libcs, ours)
    }
}

/// Sends the rest of a message that a stream has sent in part, without the control data, which went
/// with the first byte. Returns the number of bytes sent.
///
/// # Safety
/// The kernel has accepted the message.
unsafe fn send_rest(fd: c_int, message: &msghdr, flags: c_int, sent: usize) -> usize {
    if message.msg_iovlen == 0 {
        return 0;
    }
    // SAFETY: the caller's contract.
    let all = unsafe { core::slice::from_raw_parts(message.msg_iov, message.msg_iovlen) };
    let total: usize = all.iter().map(|v| v.iov_len).sum();
    if sent >= total {
        return 0;
    }
    let rest = transfer_all(total - sent, |done| {
        let mut buffers = after(all, sent + done);
        // SAFETY: a plain structure of pointers and lengths.
        let mut message: msghdr = unsafe { core::mem::zeroed() };
        message.msg_iov = buffers.as_mut_ptr();
        message.msg_iovlen = buffers.len();
        let message = &raw const message;
        // SAFETY: parts of the caller's buffers.
        send_with(fd, flags, |flags| unsafe {
            call!(libc::SYS_sendmsg, fd, message, flags)
        })
    });
    rest.unwrap_or(0)
}

/// `setsockopt`: notes that there are timeouts, or reads of a TCP stream that leave some behind.
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
    if matches!(
        (level, option),
        (libc::SOL_TCP, libc::TCP_ULP) | (libc::SOL_SOCKET, libc::SO_RCVLOWAT)
    ) {
        fds::uneven(fd);
    }
    // SAFETY: the caller's contract.
    sys::to_c(unsafe { call!(libc::SYS_setsockopt, fd, level, option, value, length) }) as c_int
}
