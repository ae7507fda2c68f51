//! `sys/socket.h`.
//!
//! Sending and receiving try with `MSG_DONTWAIT`, which has no effect that others could see; what
//! takes several attempts is in [`pieces`]. [`accept`](crate::net::accept) and
//! [`connect`](crate::net::connect) have no such flag.

use crate::io::pieces;
use crate::io::transfer::asked;
pub(crate) use crate::net::accept::{accept, accept4};
pub(crate) use crate::net::connect::connect;
use crate::registry::interposed;
use crate::{cancel, virtual_thread};
use core::cell::Cell;
use core::ffi::{c_int, c_void};
use libc::{iovec, msghdr, sa_family_t, size_t, sockaddr, socklen_t, ssize_t};
use pirn_rt::blocking::fds;
use pirn_rt::blocking::fds::readiness::{self, Interest};
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::Awaited;

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
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_RCVTIMEO);
    let restarts = |limit: Deadline| !has_begun && limit.is_never();
    let interest = Interest::Read;
    readiness::restarting(restarts, Awaited::ready, fd, interest, deadline, at_once)
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
    let deadline = |entry: &fds::Entry| entry.deadline(fd, libc::SO_RCVTIMEO);
    let wanted = buffer.iov_len;
    let attempt = || match attempt(libc::MSG_DONTWAIT) {
        Err(Errno(libc::EAGAIN)) if fds::is_shut(fd) => attempt(0), // As above.
        result => result,
    };
    readiness::reading(
        fd,
        || wanted,
        deadline,
        attempt,
        || {
            // SAFETY: the caller's buffer and places.
            unsafe { receive_in_pieces(fd, buffer, 0, address) }
        },
    )
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
    limit: &Cell<Option<Deadline>>,
    attempt: impl Fn(c_int) -> SysResult,
) -> SysResult {
    let deadline = |entry: &fds::Entry| {
        let deadline = entry.deadline(fd, libc::SO_SNDTIMEO);
        limit.set(Some(deadline));
        deadline
    };
    let attempt = || match limit.get().and_then(|_| pieces::error_after_wait(fd)) {
        None => attempt(flags | libc::MSG_DONTWAIT),
        Some(error) => Err(error),
    };
    readiness::blocking(fd, Interest::Write, deadline, attempt)
}

/// Performs a sending operation with an address of the family that `family` returns. It is called
/// only after an attempt, in which the kernel has checked the address.
fn send_to(
    fd: c_int,
    flags: c_int,
    limit: &Cell<Option<Deadline>>,
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
        let kernel = |flags: c_int| {
            // SAFETY: the caller's contract.
            unsafe {
                call!(
                    libc::SYS_recvfrom,
                    fd,
                    buffer,
                    length,
                    flags,
                    address,
                    address_length
                )
            }
        };
        let place = iovec {
            iov_base: buffer,
            iov_len: length,
        };
        let from = (address, address_length);
        if flags == 0 {
            return sys::to_c(receive_plainly(fd, place, from, kernel));
        }
        if virtual_thread().is_some()
            // SAFETY: the caller's contract.
            && let Some(result) = unsafe { receive_in_pieces(fd, place, flags, from) }
        {
            return sys::to_c(result);
        }
        sys::to_c(receive(fd, flags, false, kernel))
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

/// `recvmsg`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmsg(fd: c_int, message: *mut msghdr, flags: c_int) -> ssize_t {
    let ours = move || {
        // SAFETY: the caller's contract.
        let result = unsafe { receive_message(fd, message, flags) };
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

/// Receives a message.
///
/// # Safety
/// As for `recvmsg(2)`.
pub(super) unsafe fn receive_message(fd: c_int, message: *mut msghdr, flags: c_int) -> SysResult {
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
        let kernel = |flags: c_int| {
            // SAFETY: the caller's contract.
            unsafe {
                call!(
                    libc::SYS_sendto,
                    fd,
                    buffer,
                    length,
                    flags,
                    address,
                    address_length
                )
            }
        };
        if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
            return sys::to_c(kernel(flags));
        }
        let limit = Cell::new(None);
        let sent = if address.is_null() {
            send_with(fd, flags, &limit, kernel)
        } else {
            // SAFETY: the kernel has read the address.
            let family = || unsafe { family(address, address_length) };
            send_to(fd, flags, &limit, family, kernel)
        };
        let place = iovec {
            iov_base: buffer.cast_mut(),
            iov_len: length,
        };
        sys::to_c(match sent {
            Ok(sent) if sent < length => {
                // SAFETY: the kernel has taken this much of the buffer.
                Ok(unsafe { pieces::send_rest(fd, &[place], sent, flags, limit.get()) })
            }
            result => result,
        })
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
    // SAFETY: the caller's contract.
    let ours = move || sys::to_c(unsafe { send_message(fd, message, flags) });
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
    let limit = Cell::new(None);
    let sent = send_to(fd, flags, &limit, family, kernel)?;
    // SAFETY: the kernel has taken this much of the message.
    Ok(unsafe { pieces::send_rest(fd, pieces::buffers(&*message), sent, flags, limit.get()) })
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
    if (level, option) == (libc::SOL_SOCKET, libc::SO_RCVLOWAT) {
        fds::low_water_set(fd);
    }
    if (level, option) == (libc::SOL_TCP, libc::TCP_ULP) {
        fds::uneven(fd);
    }
    // SAFETY: the caller's contract.
    sys::to_c(unsafe { call!(libc::SYS_setsockopt, fd, level, option, value, length) }) as c_int
}
