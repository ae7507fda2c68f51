//! `sys/socket.h`.
//!
//! Sending and receiving try with `MSG_DONTWAIT`, which has no effect that others could see; what
//! takes several attempts is in [`pieces`]. [`accept` and `connect`](crate::net::connect) have no
//! such flag.

use crate::forward::{checked, created};
use crate::io::pieces;
use crate::io::simulated_sockets;
use crate::io::transfer::asked;
pub(crate) use crate::net::connect::{accept, accept4, connect};
use crate::registry::interposed;
use crate::simulated::network;
use crate::virtual_thread;
use core::ffi::{c_int, c_void};
use core::ptr;
use libc::{iovec, msghdr, sa_family_t, size_t, sockaddr, socklen_t, ssize_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::fds;
use pirn_rt::blocking::fds::readiness::{FdCall, Interest, Restarts};
use pirn_rt::sched::simulation;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;

interposed! {
    family "Sockets" for Correctness;

    Parks by hand {
        recvfrom, recvmsg, sendto, sendmsg,
        accept: "blocks the carrier if another process takes the connection at that moment", accept4,
        connect: "tries again every 20 ms or so where a Unix listener's queue is full",
    }
    Parks alias { __send = send, __connect = connect }
    Parks as {
        fn recv(fd: c_int, buffer: *mut c_void, length: size_t, flags: c_int) -> ssize_t
            = recvfrom(fd, buffer, length, flags, ptr::null_mut(), ptr::null_mut());
        fn send(fd: c_int, buffer: *const c_void, length: size_t, flags: c_int) -> ssize_t
            = sendto(fd, buffer, length, flags, ptr::null(), 0);
        fn __recv_chk(fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int)
            -> ssize_t = checked(length, room, || recv(fd, buffer, length, flags));
        fn __recvfrom_chk(
            fd: c_int, buffer: *mut c_void, length: size_t, room: size_t, flags: c_int,
            address: *mut sockaddr, address_length: *mut socklen_t,
        ) -> ssize_t = checked(length, room, || {
            recvfrom(fd, buffer, length, flags, address, address_length)
        });
    }
    Kernel as {
        fn socket(domain: c_int, kind: c_int, protocol: c_int) -> c_int
            = match network().and_then(|it| it.socket(domain, kind, protocol)) {
                Some(result) => created(result),
                None => created(call!(libc::SYS_socket, domain, kind, protocol)),
            };
    }
    Kernel by hand { socketpair, setsockopt }
}

#[libc_fn]
pub unsafe fn socketpair(domain: c_int, kind: c_int, protocol: c_int, pair: *mut c_int) -> c_int {
    let result = call!(libc::SYS_socketpair, domain, kind, protocol, pair);
    if result.is_ok() {
        for i in 0..2 {
            // SAFETY: the kernel has written two.
            fds::created(unsafe { *pair.add(i) });
        }
    }
    sys::to_c(result) as c_int
}

/// Performs a receiving operation: `attempt(flags)` with and without `MSG_DONTWAIT`. If the call
/// has already received something, any handler of a signal ends it.
pub(super) fn receive(
    fd: c_int,
    flags: c_int,
    has_begun: bool,
    attempt: impl Fn(c_int) -> SysResult,
) -> SysResult {
    if virtual_thread().is_none() {
        return attempt(flags);
    }
    let at_once = || match attempt(flags | libc::MSG_DONTWAIT) {
        // The kernel does not wait, but says so only to a call that would.
        Err(Errno(libc::EAGAIN)) if fds::is_shut(fd) => attempt(flags),
        result => result,
    };
    if pieces::never_waits(fd, flags) {
        return attempt(flags | libc::MSG_DONTWAIT);
    }
    let restarts = match has_begun {
        true => Restarts::Never,
        false => Restarts::Untimed,
    };
    let call = FdCall::new(fd, Interest::Read);
    call.restarting(restarts).run(at_once)
}

/// Receives into a buffer without any flag; see [`receive`].
fn receive_plainly(
    fd: c_int,
    buffer: iovec,
    address: (*mut sockaddr, *mut socklen_t),
    attempt: impl Fn(c_int) -> SysResult,
) -> SysResult {
    if virtual_thread().is_none() {
        return attempt(0);
    }
    let mut call = FdCall::new(fd, Interest::Read);
    if call.has_low_water()
        // SAFETY: the caller's buffer and places.
        && let Some(result) = unsafe { receive_in_pieces(fd, buffer, 0, address) }
    {
        return result;
    }
    let at_once = || match attempt(libc::MSG_DONTWAIT) {
        Err(Errno(libc::EAGAIN)) if fds::is_shut(fd) => attempt(0), // It does not wait any more.
        result => result,
    };
    call.read(move || buffer.iov_len, at_once)
}

/// Receives into a buffer, if that waits for more than one byte.
///
/// # Safety
/// As for `recvfrom(2)`.
unsafe fn receive_in_pieces(
    fd: c_int,
    buffer: iovec,
    flags: c_int,
    address: (*mut sockaddr, *mut socklen_t),
) -> Option<SysResult> {
    let wanted = || asked(buffer.iov_base.addr(), buffer.iov_len);
    match pieces::least(fd, flags, wanted) {
        0 | 1 => None,
        // SAFETY: the caller's contract.
        least => Some(unsafe { pieces::receive_from(fd, (&buffer, 1), flags, address, least) }),
    }
}

/// Performs a sending operation without an address. If it waits, `limit` gets its deadline.
fn send_with(
    fd: c_int,
    flags: c_int,
    limit: &mut Option<Deadline>,
    attempt: impl Fn(c_int) -> SysResult,
) -> SysResult {
    let mut call = FdCall::new(fd, Interest::Write);
    let result = call.run(pieces::sending(fd, || attempt(flags | libc::MSG_DONTWAIT)));
    if call.deadline.is_some() {
        *limit = call.deadline;
    }
    result
}

/// Performs a sending operation with an address of the family that `family` returns. It is called
/// only after an attempt, in which the kernel has checked the address.
fn send_to(
    fd: c_int,
    flags: c_int,
    limit: &mut Option<Deadline>,
    family: impl FnOnce() -> Option<sa_family_t>,
    attempt: impl Fn(c_int) -> SysResult,
) -> SysResult {
    match attempt(flags | libc::MSG_DONTWAIT) {
        Err(Errno(libc::EAGAIN)) => {}
        // The send waits for the connection that it has begun.
        Err(Errno(libc::EINPROGRESS)) if flags & libc::MSG_FASTOPEN != 0 => {
            return send_with(fd, flags & !libc::MSG_FASTOPEN, limit, attempt);
        }
        result => return result,
    }
    match family() {
        Some(family) if c_int::from(family) == libc::AF_UNIX => {
            pieces::send_patiently(fd, || attempt(flags | libc::MSG_DONTWAIT))
        }
        _ => send_with(fd, flags, limit, attempt),
    }
}

#[libc_fn(point)]
pub unsafe fn recvfrom(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    address: *mut sockaddr,
    address_length: *mut socklen_t,
) -> ssize_t {
    let kernel = |flags: c_int| {
        call!(
            libc::SYS_recvfrom,
            fd,
            buffer,
            length,
            flags,
            address,
            address_length
        )
    };
    let from = (address, address_length);
    if simulation::is_running()
        && let Some(result) = receive_bytes_simulated(fd, buffer, length, flags, from)
    {
        return sys::to_c(result);
    }
    let place = iovec {
        iov_base: buffer,
        iov_len: length,
    };
    if flags == 0 {
        return sys::to_c(receive_plainly(fd, place, from, kernel));
    }
    if virtual_thread().is_some()
        && let Some(result) = receive_in_pieces(fd, place, flags, from)
    {
        return sys::to_c(result);
    }
    sys::to_c(receive(fd, flags, false, kernel))
}

/// Receives bytes from a simulated socket. Apart, so that [`recvfrom`] keeps no message.
///
/// # Safety
/// As for `recvfrom(2)`.
#[cold]
#[inline(never)]
unsafe fn receive_bytes_simulated(
    fd: c_int,
    buffer: *mut c_void,
    length: size_t,
    flags: c_int,
    (address, address_length): (*mut sockaddr, *mut socklen_t),
) -> Option<SysResult> {
    let place = iovec {
        iov_base: buffer,
        iov_len: length,
    };
    let message = || {
        let mut message = pieces::message_of(&raw const place, 1);
        if !address.is_null() && !address_length.is_null() {
            message.msg_name = address.cast();
            // SAFETY: the caller's contract.
            message.msg_namelen = unsafe { *address_length };
        }
        message
    };
    let then = |message: &msghdr| {
        if !message.msg_name.is_null() {
            // SAFETY: the caller's pointer, which has been read.
            unsafe { *address_length = message.msg_namelen };
        }
    };
    // SAFETY: the caller's contract.
    unsafe { simulated_sockets::receive(fd, message, flags, then) }
}

#[libc_fn(point)]
pub unsafe fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let result = receive_message(fd, message, flags);
    if result.is_ok() {
        // SAFETY: the kernel has filled it in.
        unsafe { note_received_descriptors(message) };
    }
    sys::to_c(result)
}

/// Receives a message.
///
/// # Safety
/// As for `recvmsg(2)`.
pub(super) unsafe fn receive_message(fd: c_int, message: *mut msghdr, flags: c_int) -> SysResult {
    let then = |received: &msghdr| {
        // SAFETY: the caller's message, without the buffers, which may be shorter.
        unsafe {
            (*message).msg_namelen = received.msg_namelen;
            (*message).msg_controllen = received.msg_controllen;
            (*message).msg_flags = received.msg_flags;
        }
    };
    // SAFETY: the caller's contract.
    if let Some(result) = unsafe { simulated_sockets::receive(fd, || *message, flags, then) } {
        return result;
    }
    let least = match virtual_thread() {
        Some(_) => pieces::least_of_message(fd, message, flags),
        None => 1,
    };
    if least > 1 {
        // SAFETY: the caller's contract; the buffers have been read.
        return unsafe { pieces::receive(fd, message, flags, least) };
    }
    // SAFETY: the caller's contract.
    receive(fd, flags, false, |flags| unsafe {
        call!(libc::SYS_recvmsg, fd, message, flags)
    })
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
                    let fd = data.add(i).read_unaligned();
                    fds::created_shared(fd);
                    if let Some(network) = network() {
                        network.received(fd);
                    }
                }
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
    }
}

/// All of it, as a blocking send does.
#[libc_fn(point)]
pub unsafe fn sendto(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    address: *const sockaddr,
    address_length: socklen_t,
) -> ssize_t {
    let to = (address, address_length);
    sys::to_c(match simulation::is_running() {
        false => send_bytes(fd, buffer, length, flags, to),
        true => send_bytes_simulated(fd, buffer, length, flags, to),
    })
}

/// Sends bytes, by a simulated socket or another. Apart, so that [`sendto`] keeps no message.
///
/// # Safety
/// As for `sendto(2)`.
#[cold]
#[inline(never)]
unsafe fn send_bytes_simulated(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    to: (*const sockaddr, socklen_t),
) -> SysResult {
    let place = iovec {
        iov_base: buffer.cast_mut(),
        iov_len: length,
    };
    let message = || {
        let mut message = pieces::message_of(&raw const place, 1);
        (message.msg_name, message.msg_namelen) = (to.0.cast_mut().cast(), to.1);
        message
    };
    // SAFETY: the caller's contract, for a part of the buffer.
    let kernel = |length| unsafe { send_bytes(fd, buffer, length, flags, to) };
    // SAFETY: the caller's contract.
    unsafe { simulated_sockets::send(fd, length, message, kernel) }
}

/// Sends bytes: all of them.
///
/// # Safety
/// As for `sendto(2)`.
#[inline(always)]
unsafe fn send_bytes(
    fd: c_int,
    buffer: *const c_void,
    length: size_t,
    flags: c_int,
    (address, address_length): (*const sockaddr, socklen_t),
) -> SysResult {
    // SAFETY: the caller's contract.
    let kernel = |flags: c_int| unsafe {
        call!(
            libc::SYS_sendto,
            fd,
            buffer,
            length,
            flags,
            address,
            address_length
        )
    };
    if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
        return kernel(flags);
    }
    let mut limit = None;
    let sent = if address.is_null() {
        send_with(fd, flags, &mut limit, kernel)
    } else {
        // SAFETY: the kernel has read the address.
        let family = || unsafe { family(address, address_length) };
        send_to(fd, flags, &mut limit, family, kernel)
    };
    let place = iovec {
        iov_base: buffer.cast_mut(),
        iov_len: length,
    };
    match sent {
        Ok(sent) if sent < length => {
            // SAFETY: the kernel has taken this much of the buffer.
            Ok(unsafe { pieces::send_rest(fd, &[place], sent, flags, limit) })
        }
        result => result,
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

#[libc_fn(point)]
pub unsafe fn sendmsg(fd: c_int, message: *const msghdr, flags: c_int) -> ssize_t {
    let kernel = |_| send_message(fd, message, flags);
    sys::to_c(simulated_sockets::send(fd, usize::MAX, || *message, kernel))
}

/// Sends a message: all of it.
///
/// # Safety
/// As for `sendmsg(2)`.
pub(super) unsafe fn send_message(fd: c_int, message: *const msghdr, flags: c_int) -> SysResult {
    // SAFETY: the caller's contract.
    let kernel = |flags: c_int| unsafe { call!(libc::SYS_sendmsg, fd, message, flags) };
    if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
        return kernel(flags);
    }
    // SAFETY: the kernel has read the message, and the address in it.
    let family = || unsafe { family((*message).msg_name.cast(), (*message).msg_namelen) };
    let mut limit = None;
    let sent = send_to(fd, flags, &mut limit, family, kernel)?;
    // SAFETY: the kernel has taken this much of the message.
    Ok(unsafe { pieces::send_rest(fd, pieces::buffers(&*message), sent, flags, limit) })
}

/// Notes that there are timeouts, or reads of a TCP stream that leave some behind.
#[libc_fn]
pub unsafe fn setsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> c_int {
    let simulated = network().and_then(|it| it.set_option(fd, level, option, value, length));
    if let Some(result) = simulated {
        return sys::to_c(result) as c_int;
    }
    if level == libc::SOL_SOCKET && matches!(option, libc::SO_RCVTIMEO | libc::SO_SNDTIMEO) {
        fds::timeouts_set(fd);
    }
    if (level, option) == (libc::SOL_SOCKET, libc::SO_RCVLOWAT) {
        fds::low_water_set(fd);
    }
    if (level, option) == (libc::SOL_TCP, libc::TCP_ULP) {
        fds::uneven(fd);
    }
    sys::to_c(call!(
        libc::SYS_setsockopt,
        fd,
        level,
        option,
        value,
        length
    )) as c_int
}
