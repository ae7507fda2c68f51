//! Receives and sends that take several attempts, where the kernel needs one call.
//!
//! Some calls wait for all of their bytes (`MSG_WAITALL`, `SO_RCVLOWAT`, every send). If such a
//! call has some bytes when it meets the end, an error, a time limit or a signal handler, it
//! returns their number, and an error stays for the next call. A further attempt without bytes
//! would take the error away, and a send would raise `SIGPIPE`. So the call makes a further attempt
//! only if there is something to transfer.

use crate::io::transfer::{asked_of_all, most};
use core::ffi::c_int;
use core::mem;
use libc::{iovec, msghdr, sockaddr, socklen_t};
use pirn_rt::blocking::fds;
use pirn_rt::blocking::fds::readiness::{self, FdCall, Interest, Restarts};
use pirn_rt::blocking::fds::status_flags;
use pirn_rt::blocking::retry::Retry;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_word::Interruptible;

const EAGAIN: SysResult = Err(Errno(libc::EAGAIN));
/// `include/uapi/asm-generic/sockios.h`.
const SIOCATMARK: libc::Ioctl = 0x8905;
/// `include/uapi/asm-generic/socket.h`.
const SO_PASSPIDFD: c_int = 76;

pub(crate) fn option(fd: c_int, option: c_int) -> Option<c_int> {
    // SAFETY: the options that are asked for here are ints.
    unsafe { sys::socket_option(fd, option) }.ok()
}

/// Returns whether a descriptor is a socket, and of which family.
pub(crate) fn family(fd: c_int) -> Option<c_int> {
    option(fd, libc::SO_DOMAIN)
}

fn is_unix(fd: c_int) -> bool {
    family(fd) == Some(libc::AF_UNIX)
}

/// Returns whether the kernel does not wait with these flags: nor for urgent data of a stream, nor
/// for what is in the queue of errors, which sockets of some families do not have.
pub(crate) fn never_waits(fd: c_int, flags: c_int) -> bool {
    let has_errors = || !matches!(family(fd), Some(libc::AF_UNIX | libc::AF_NETLINK));
    flags & libc::MSG_DONTWAIT != 0
        || flags & libc::MSG_OOB != 0 && option(fd, libc::SO_TYPE) == Some(libc::SOCK_STREAM)
        || flags & libc::MSG_ERRQUEUE != 0 && has_errors()
}

/// Returns how many bytes a blocking receive with these flags waits for. `wanted` returns how many
/// its buffers have room for; `None`: the kernel will not accept them.
pub(crate) fn least(fd: c_int, flags: c_int, wanted: impl FnOnce() -> Option<usize>) -> usize {
    let all = flags & libc::MSG_WAITALL != 0;
    if !(all || fds::may_have_low_water(fd)) || never_waits(fd, flags) {
        return 1;
    }
    // What an attempt sees of a Unix socket is all that the kernel would wait for, and an offset
    // moves with each.
    let once = || is_unix(fd) || option(fd, libc::SO_PEEK_OFF).is_some_and(|offset| offset >= 0);
    if option(fd, libc::SO_TYPE) != Some(libc::SOCK_STREAM) || flags & libc::MSG_PEEK != 0 && once()
    {
        return 1;
    }
    let wanted = wanted().unwrap_or(1).min(most());
    let mark = if all {
        None
    } else {
        option(fd, libc::SO_RCVLOWAT)
    };
    let mark = mark.map_or(wanted, |mark| mark.max(1) as usize);
    wanted.min(mark).max(1)
}

/// Returns how many bytes a receive of a message waits for.
pub(crate) fn least_of_message(fd: c_int, message: *const msghdr, flags: c_int) -> usize {
    least(fd, flags, || {
        let at = |offset| sys::fetch_u64(message.addr().wrapping_add(offset)).ok();
        let iov = at(mem::offset_of!(msghdr, msg_iov))? as *const iovec;
        let count = at(mem::offset_of!(msghdr, msg_iovlen))?;
        asked_of_all(iov, c_int::try_from(count).ok()?)
    })
}

/// Receives into some buffers, as `recvfrom` or `read`, and waits for `least` bytes. A null
/// address: the program does not ask for the sender's.
///
/// # Safety
/// As for `recvfrom(2)`; the buffers can be read.
#[cold]
pub(crate) unsafe fn receive_from(
    fd: c_int,
    (iov, count): (*const iovec, usize),
    flags: c_int,
    (address, length): (*mut sockaddr, *mut socklen_t),
    least: usize,
) -> SysResult {
    let mut message = message_of(iov, count);
    message.msg_name = address.cast();
    if !address.is_null() {
        message.msg_namelen = sys::fetch_u32(length.addr())?;
    }
    // SAFETY: the caller's contract.
    let result = unsafe { receive(fd, &raw mut message, flags, least) };
    if result.is_ok() && !address.is_null() {
        // SAFETY: the caller's pointer, which has been read.
        unsafe { *length = message.msg_namelen };
    }
    result
}

/// Receives a message from a stream, and waits for `least` bytes.
///
/// # Safety
/// As for `recvmsg(2)`; the message and its buffers can be read.
pub(crate) unsafe fn receive(
    fd: c_int,
    message: *mut msghdr,
    flags: c_int,
    least: usize,
) -> SysResult {
    let mut call = FdCall::new(fd, Interest::Read);
    let unix = is_unix(fd);
    // SAFETY: the caller's contract.
    let original = unsafe { *message };
    let attempt = |done: usize| {
        // SAFETY: the caller's contract. Parts of the caller's buffers.
        unsafe {
            let mut rest = after(buffers(&original), done);
            let mut next = original;
            next.msg_iov = rest.as_mut_ptr();
            next.msg_iovlen = rest.len();
            let received = call!(
                libc::SYS_recvmsg,
                fd,
                &raw mut next,
                flags | libc::MSG_DONTWAIT
            )?;
            (*message).msg_namelen = next.msg_namelen;
            (*message).msg_controllen = next.msg_controllen;
            (*message).msg_flags = next.msg_flags;
            Ok(received)
        }
    };
    if flags & libc::MSG_PEEK != 0 {
        const ENDS: i16 = libc::POLLRDHUP | libc::POLLPRI;
        const ENDED: i16 = ENDS | libc::POLLHUP | libc::POLLERR;
        let mut seen = call.run(|| attempt(0))?;
        let _ = call.restarting(Restarts::Never).run(|| {
            seen = attempt(0)?;
            match (1..least).contains(&seen) && sys::events_now(fd, ENDS) & ENDED == 0 {
                true => EAGAIN,
                false => Ok(seen),
            }
        });
        return Ok(seen);
    }
    let mut is_last = false;
    call.in_pieces(0..least, |done| {
        if done > 0 && (is_last || !may_go_on(fd, unix)?) {
            return Ok(0);
        }
        let received = attempt(done)?;
        // SAFETY: the kernel has written the message's results.
        is_last = unix && unsafe { brought_descriptors(fd, message, original.msg_controllen) };
        Ok(received)
    })
}

/// Returns whether a receive that has some bytes makes another attempt. `EAGAIN`: not yet.
fn may_go_on(fd: c_int, unix: bool) -> Result<bool, Errno> {
    let ask = |request: libc::Ioctl| {
        let mut answer: c_int = 0;
        // SAFETY: room for an int.
        let asked = unsafe { call!(libc::SYS_ioctl, fd, request, &raw mut answer) };
        asked.ok().map(|_| answer)
    };
    const ENDED: i16 = libc::POLLRDHUP | libc::POLLHUP;
    if ask(SIOCATMARK) == Some(1) {
        return Ok(false); // Urgent data end a receive.
    }
    if unix {
        return Ok(true); // The kernel takes the error away, too.
    }
    // In this order: nothing comes after the end.
    let events = sys::events_now(fd, libc::POLLRDHUP);
    match ask(libc::FIONREAD) {
        Some(0) if events & ENDED != 0 => Ok(false),
        Some(0) if events & libc::POLLERR == 0 => Err(Errno(libc::EAGAIN)),
        _ => Ok(true),
    }
}

/// Returns whether a message from a Unix socket came with descriptors. A receive ends with them.
///
/// # Safety
/// The kernel has written the message's results, with this room for control messages.
unsafe fn brought_descriptors(fd: c_int, message: *const msghdr, room: usize) -> bool {
    // SAFETY: control messages as the kernel wrote them; the macros stay inside.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(message);
        while let Some(control) = header.as_ref() {
            if control.cmsg_level == libc::SOL_SOCKET && control.cmsg_type == libc::SCM_RIGHTS {
                return true;
            }
            header = libc::CMSG_NXTHDR(message, header);
        }
        // There was no room for them; or, if there was none at all, for what each message has.
        let others = [libc::SO_PASSCRED, libc::SO_PASSSEC, SO_PASSPIDFD];
        let asked = |other| option(fd, other).is_some_and(|on| on != 0);
        (*message).msg_flags & libc::MSG_CTRUNC != 0 && (room > 0 || !others.into_iter().any(asked))
    }
}

/// Returns a message's buffers.
///
/// # Safety
/// They are there, or none are.
pub(crate) unsafe fn buffers(message: &msghdr) -> &[iovec] {
    match message.msg_iovlen {
        0 => &[], // There may be no address either.
        // SAFETY: the caller's contract.
        count => unsafe { core::slice::from_raw_parts(message.msg_iov, count) },
    }
}

/// Returns a message with these buffers, and neither an address nor control data.
pub(crate) fn message_of(buffers: *const iovec, count: usize) -> msghdr {
    // SAFETY: a plain structure of pointers and lengths.
    let mut message: msghdr = unsafe { mem::zeroed() };
    message.msg_iov = buffers.cast_mut();
    message.msg_iovlen = count;
    message
}

/// Returns the part of some buffers after the first `done` bytes.
pub(crate) fn after(all: &[iovec], mut done: usize) -> Vec<iovec> {
    let mut rest = Vec::with_capacity(all.len());
    for buffer in all {
        let skip = done.min(buffer.iov_len);
        done -= skip;
        if skip < buffer.iov_len || buffer.iov_len == 0 && done == 0 {
            // SAFETY: inside the buffer.
            let iov_base = unsafe { buffer.iov_base.cast::<u8>().add(skip) }.cast();
            rest.push(iovec {
                iov_base,
                iov_len: buffer.iov_len - skip,
            });
        }
    }
    rest
}

/// Repeats `transfer(done so far)` until `total` bytes are done. If an error follows some bytes,
/// returns their number: the next call will meet the error again.
pub(crate) fn transfer_all(
    total: usize,
    mut transfer: impl FnMut(usize) -> SysResult,
) -> SysResult {
    let mut done = 0;
    loop {
        match transfer(done) {
            Ok(n) if done + n >= total || n == 0 => return Ok(done + n),
            Ok(n) => done += n,
            Err(_) if done > 0 => return Ok(done),
            Err(e) => return Err(e),
        }
    }
}

/// Sends what is left of some buffers after a stream has taken `sent` bytes, without control data,
/// which went with the first byte. `limit` is the deadline if there has been a wait. Returns the
/// number of bytes sent in all.
///
/// # Safety
/// The kernel has accepted the buffers.
#[cold]
pub(crate) unsafe fn send_rest(
    fd: c_int,
    all: &[iovec],
    sent: usize,
    flags: c_int,
    limit: Option<Deadline>,
) -> usize {
    let total = all.iter().map(|buffer| buffer.iov_len).sum::<usize>();
    let total = total.min(most());
    if sent == 0 || sent >= total {
        return sent;
    }
    let attempt = |done| send_more(fd, after(all, done), flags);
    let call = || FdCall::new(fd, Interest::Write).restarting(Restarts::Never);
    if is_unix(fd) {
        // The kernel's time limit there is for each of its buffers.
        let more = transfer_all(total - sent, |more| call().run(|| attempt(sent + more)));
        let _ = error_after_wait(fd); // The kernel takes it away.
        sent + more.unwrap_or(0)
    } else {
        let mut call = call();
        call.deadline = limit;
        call.in_pieces(sent..total, attempt).unwrap_or(sent)
    }
}

/// Returns the attempts to send of a call: those after a wait begin with [`error_after_wait`].
#[inline]
pub(crate) fn sending(
    fd: c_int,
    mut attempt: impl FnMut() -> SysResult,
) -> impl FnMut() -> SysResult {
    let mut has_waited = false;
    move || match mem::replace(&mut has_waited, true).then(|| error_after_wait(fd)) {
        Some(Some(error)) => Err(error),
        _ => attempt(),
    }
}

/// Returns the error with which a send that has waited ends, if the peer of a Unix socket has
/// closed it with bytes unread: a new call would be told of a broken pipe.
#[cold]
pub(crate) fn error_after_wait(fd: c_int) -> Option<Errno> {
    let ended = sys::events_now(fd, 0) & libc::POLLHUP != 0 && is_unix(fd);
    let error = if ended {
        option(fd, libc::SO_ERROR)
    } else {
        None
    };
    error.filter(|error| *error > 0).map(Errno)
}

/// Makes a further attempt to send. 0: there is an error, which the next call will meet.
fn send_more(fd: c_int, rest: Vec<iovec>, flags: c_int) -> SysResult {
    if sys::events_now(fd, 0) & libc::POLLHUP != 0 && !is_unix(fd) {
        return Ok(0);
    }
    let message = message_of(rest.as_ptr(), rest.len());
    let flags = flags | libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: parts of the caller's buffers.
    unsafe { call!(libc::SYS_sendmsg, fd, &raw const message, flags) }
}

/// Sends to a Unix socket by its address. When the addressee's queue is full, no event tells when
/// it has room: the sender's own socket is always writable, and every failed attempt even reports
/// that as a new event.
pub(crate) fn send_patiently(fd: c_int, attempt: impl Fn() -> SysResult) -> SysResult {
    static SENDERS: Retry = Retry::new(50_000);
    if status_flags::is_nonblocking(fd) {
        return Err(Errno(libc::EAGAIN));
    }
    let deadline = fds::deadline(fd, Interest::Write);
    let room = readiness::wait_for(fd, Interest::Write);
    SENDERS.until(room, deadline, Interruptible::Always, attempt)
}
