//! `recvmmsg` and `sendmmsg`: several messages in one call.

use super::socket::{note_received_descriptors, receive, sendmsg};
use crate::interpose::io::transfer::after;
use crate::interpose::registry::interposed;
use crate::interpose::thread::cancel;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno, SysResult, call};
use crate::time::Deadline;
use core::ffi::{c_int, c_uint};
use core::ptr;
use libc::{mmsghdr, msghdr, timespec};

interposed! {
    family "Several messages at once" for Scaling;

    Parks by hand { recvmmsg, sendmmsg }
}

/// `recvmmsg`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn recvmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
    timeout: *mut timespec,
) -> c_int {
    let messages = Messages { messages, count };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe { cancel::own_point(|| messages.receive_any(fd, flags, timeout)) }
}

/// `sendmmsg`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn sendmmsg(
    fd: c_int,
    messages: *mut mmsghdr,
    count: c_uint,
    flags: c_int,
) -> c_int {
    // The kernel's limit too.
    let count = count.min(libc::UIO_MAXIOV as c_uint);
    let messages = Messages { messages, count };
    // SAFETY: the caller's contract; nothing to drop.
    unsafe { cancel::own_point(move || messages.send_any(fd, flags)) }
}

/// The caller's messages.
#[derive(Clone, Copy)]
struct Messages {
    messages: *mut mmsghdr,
    count: c_uint,
}

/// The methods have the contract of the interposed functions. `done` messages are done.
impl Messages {
    fn get(self, index: usize) -> *mut mmsghdr {
        self.messages.wrapping_add(index)
    }

    unsafe fn receive(
        self,
        fd: c_int,
        done: usize,
        flags: c_int,
        timeout: *mut timespec,
    ) -> SysResult {
        let (rest, count) = (self.get(done), self.count as usize - done);
        // SAFETY: the caller's contract.
        unsafe { call!(libc::SYS_recvmmsg, fd, rest, count, flags, timeout) }
    }

    unsafe fn send(self, fd: c_int, done: usize, flags: c_int) -> SysResult {
        let (rest, count) = (self.get(done), self.count as usize - done);
        // SAFETY: the caller's contract.
        unsafe { call!(libc::SYS_sendmmsg, fd, rest, count, flags) }
    }

    /// Receives messages, as `recvmmsg` does.
    ///
    /// # Safety
    /// As for `recvmmsg`.
    unsafe fn receive_any(self, fd: c_int, flags: c_int, timeout: *mut timespec) -> c_int {
        // SAFETY: the caller's contract.
        let result = unsafe {
            if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
                self.receive(fd, 0, flags, timeout)
            } else {
                self.receive_all(fd, flags, timeout)
            }
        };
        for i in 0..result.unwrap_or(0) {
            // SAFETY: the kernel has filled in this many.
            unsafe { note_received_descriptors(&raw const (*self.get(i)).msg_hdr) };
        }
        sys::to_c(result) as c_int
    }

    /// Sends messages, as `sendmmsg` does.
    ///
    /// # Safety
    /// As for `sendmmsg`.
    unsafe fn send_any(self, fd: c_int, flags: c_int) -> c_int {
        // SAFETY: the caller's contract.
        sys::to_c(unsafe {
            if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
                self.send(fd, 0, flags)
            } else {
                self.send_all(fd, flags)
            }
        }) as c_int
    }

    /// Receives as many messages as there is room for, or, with `MSG_WAITFORONE`, as there are.
    ///
    /// As in the kernel, the timeout is checked after each message, and does not end the wait for
    /// the first one.
    unsafe fn receive_all(self, fd: c_int, flags: c_int, timeout: *mut timespec) -> SysResult {
        let start = sys::now();
        // SAFETY: the caller's contract, here and below.
        let begin = |flags| unsafe { self.receive(fd, 0, flags, timeout) };
        let first = receive(fd, flags, begin)?;
        // SAFETY: the kernel has read it; the attempt has subtracted the time that it took.
        let left = unsafe { timeout.as_ref() }.map(sys::nanos);
        let until = left.map_or(Deadline::NEVER, |left| {
            Deadline::from_nanos(start.saturating_add(left))
        });
        let mut done = first;
        let more = |done: usize| {
            done < self.count as usize
                && flags & libc::MSG_WAITFORONE == 0
                && !until.has_passed()
                // SAFETY: as above. Urgent data end the call.
                && unsafe { (*self.get(done - 1)).msg_hdr.msg_flags } & libc::MSG_OOB == 0
        };
        while done > 0 && more(done) {
            // SAFETY: as above.
            let next = |flags| unsafe { self.receive(fd, done, flags, ptr::null_mut()) };
            match receive(fd, flags, next) {
                Ok(count) => done += count,
                Err(_) => break, // The next call will meet it again.
            }
        }
        if !timeout.is_null() {
            // SAFETY: as above.
            unsafe { *timeout = sys::timespec(until.left()) };
        }
        Ok(done)
    }

    /// Sends all of them.
    unsafe fn send_all(self, fd: c_int, flags: c_int) -> SysResult {
        let mut done = 0;
        while done < self.count as usize {
            // SAFETY: the caller's contract, here and below.
            let result = match unsafe { self.send(fd, done, flags | libc::MSG_DONTWAIT) } {
                // SAFETY: as above; this many are sent, the last of them perhaps in part.
                Ok(count) => unsafe { self.finish(fd, done + count - 1, flags) }.map(|()| count),
                // SAFETY: as above.
                Err(Errno(libc::EAGAIN)) => unsafe { self.send_one(fd, done, flags) },
                result => result,
            };
            match result {
                Ok(count) => done += count,
                Err(_) if done > 0 => break, // The next call will meet it again.
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Sends one message, when it can be sent.
    unsafe fn send_one(self, fd: c_int, index: usize, flags: c_int) -> SysResult {
        // SAFETY: the caller's contract.
        unsafe {
            let message = self.get(index);
            let sent = sent(sendmsg(fd, &raw const (*message).msg_hdr, flags))?;
            (*message).msg_len = sent as c_uint;
        }
        Ok(1)
    }

    /// Sends the rest of a message that a stream has sent in part, without the control data, which
    /// went with the first byte.
    unsafe fn finish(self, fd: c_int, index: usize, flags: c_int) -> Result<(), Errno> {
        // SAFETY: the caller's contract; the kernel has accepted the message.
        unsafe {
            let message = self.get(index);
            let done = (*message).msg_len as usize;
            let header = &raw const (*message).msg_hdr;
            if (*header).msg_iovlen == 0 {
                return Ok(());
            }
            let all = core::slice::from_raw_parts((*header).msg_iov, (*header).msg_iovlen);
            if done >= all.iter().map(|buffer| buffer.iov_len).sum() {
                return Ok(());
            }
            let mut buffers = after(all, done);
            let mut rest: msghdr = core::mem::zeroed();
            rest.msg_iov = buffers.as_mut_ptr();
            rest.msg_iovlen = buffers.len();
            let more = sent(sendmsg(fd, &rest, flags)).unwrap_or(0);
            (*message).msg_len = (done + more) as c_uint;
        }
        Ok(())
    }
}

/// Returns the result of a C function that sends.
fn sent(result: isize) -> SysResult {
    usize::try_from(result).map_err(|_| Errno(sys::errno()))
}
