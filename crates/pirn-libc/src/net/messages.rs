//! `recvmmsg` and `sendmmsg`: several messages in one call.

use crate::io::pieces;
use crate::io::simulated_sockets;
use crate::net::socket::{note_received_descriptors, receive, receive_message, send_message};
use crate::registry::interposed;
use crate::{cancel, virtual_thread};
use core::ffi::{c_int, c_uint};
use core::ptr;
use libc::{mmsghdr, msghdr, timespec};
use pirn_rt::blocking::fds;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::time::Deadline;

interposed! {
    family "Several messages at once" for Scaling;

    Parks as {
        fn recvmmsg(
            fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int, timeout: *mut timespec,
        ) -> c_int = cancel::own_point(move || {
            Messages { messages, count }.receive_any(fd, flags, timeout)
        });
        fn sendmmsg(fd: c_int, messages: *mut mmsghdr, count: c_uint, flags: c_int) -> c_int
            = cancel::own_point(move || {
                let count = count.min(libc::UIO_MAXIOV as c_uint); // The kernel's limit too.
                Messages { messages, count }.send_any(fd, flags)
            });
    }
}

/// The caller's messages.
#[derive(Clone, Copy)]
struct Messages {
    messages: *mut mmsghdr,
    count: c_uint,
}

/// The methods have the contract of the interposed functions. `done` of the messages are
/// transferred.
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
            if simulated_sockets::has_datagrams(fd) {
                self.receive_simulated(fd, flags, timeout)
            } else if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
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
            if simulated_sockets::has_datagrams(fd) {
                self.send_simulated(fd, flags)
            } else if virtual_thread().is_none() || flags & libc::MSG_DONTWAIT != 0 {
                self.send(fd, 0, flags)
            } else {
                self.send_all(fd, flags)
            }
        }) as c_int
    }

    /// Receives messages from a simulated socket, one by one.
    ///
    /// # Safety
    /// As for `recvmmsg`.
    unsafe fn receive_simulated(
        self,
        fd: c_int,
        flags: c_int,
        timeout: *const timespec,
    ) -> SysResult {
        let until = Deadline::after_timeout(sys::fetch_timeout(timeout)?);
        let first = flags & !libc::MSG_WAITFORONE;
        let more = match flags & libc::MSG_WAITFORONE {
            0 => first,
            _ => first | libc::MSG_DONTWAIT,
        };
        // SAFETY: the caller's contract.
        self.each(|done, message| unsafe {
            if done > 0 && until.has_passed() {
                return Err(Errno(libc::EAGAIN));
            }
            receive_message(fd, message, if done == 0 { first } else { more })
        })
    }

    /// Sends messages by a simulated socket, one by one.
    ///
    /// # Safety
    /// As for `sendmmsg`.
    unsafe fn send_simulated(self, fd: c_int, flags: c_int) -> SysResult {
        // SAFETY: the caller's contract.
        self.each(|_, message| unsafe {
            let kernel = |_| send_message(fd, message, flags);
            simulated_sockets::send(fd, usize::MAX, || *message, kernel)
        })
    }

    /// Transfers each message, up to the first error. Returns how many.
    fn each(self, mut transfer: impl FnMut(usize, *mut msghdr) -> SysResult) -> SysResult {
        for done in 0..self.count as usize {
            let message = self.get(done);
            // SAFETY: an address only.
            match transfer(done, unsafe { &raw mut (*message).msg_hdr }) {
                // SAFETY: the caller's message.
                Ok(length) => unsafe { (*message).msg_len = length as c_uint },
                Err(_) if done > 0 => return Ok(done),
                Err(error) => return Err(error),
            }
        }
        Ok(self.count as usize)
    }

    /// Receives as many messages as there is room for, or, with `MSG_WAITFORONE`, as there are.
    ///
    /// As in the kernel, the timeout is checked after each message, and does not end the wait for
    /// the first one.
    unsafe fn receive_all(self, fd: c_int, flags: c_int, timeout: *mut timespec) -> SysResult {
        let start = sys::now();
        // SAFETY: the caller's contract.
        let first = unsafe { self.receive_some(fd, 0, flags, timeout) }?;
        // SAFETY: the kernel has read it; the attempt has subtracted the time that it took.
        let left = unsafe { timeout.as_ref() }.map(sys::nanos);
        let until = left.map_or(Deadline::NEVER, |left| {
            Deadline::from_nanos(start.saturating_add(left))
        });
        let mut done = first;
        // A call for one receives more without waiting, as it has if there was no need to wait.
        let flags = match flags & libc::MSG_WAITFORONE {
            0 => flags,
            _ => flags | libc::MSG_DONTWAIT,
        };
        let more = |done: usize| {
            done < self.count as usize
                && !until.has_passed()
                // SAFETY: the kernel has read it; the attempt has subtracted the time that it took.
                // Urgent data end the call.
                && unsafe { (*self.get(done - 1)).msg_hdr.msg_flags } & libc::MSG_OOB == 0
        };
        while done > 0 && more(done) {
            // SAFETY: the kernel has read it; the attempt has subtracted the time that it took.
            match unsafe { self.receive_some(fd, done, flags, ptr::null_mut()) } {
                Ok(count) => done += count,
                Err(_) => break,
            }
        }
        if !timeout.is_null() {
            // SAFETY: the kernel has read it; the attempt has subtracted the time that it took.
            unsafe { *timeout = sys::timespec(until.left()) };
        }
        Ok(done)
    }

    /// Receives the messages that are there after the first `done`, at least one; only one if a
    /// message may take several attempts. Leaves an error after the first one for the next call.
    unsafe fn receive_some(
        self,
        fd: c_int,
        done: usize,
        flags: c_int,
        timeout: *mut timespec,
    ) -> SysResult {
        let message = self.get(done);
        if done > 0 && flags & libc::MSG_PEEK == 0 {
            // Fewer bytes than `SO_RCVLOWAT` are not reported.
            let unseen = fds::may_have_low_water(fd);
            receive(fd, flags, true, |_| {
                match sys::events_now(fd, libc::POLLIN) {
                    events if events & libc::POLLERR != 0 => Err(Errno(libc::EIO)), // Whatever it is.
                    0 if !unseen => Err(Errno(libc::EAGAIN)),
                    _ => Ok(0),
                }
            })?;
        }
        // SAFETY: an address only.
        let header = unsafe { &raw mut (*message).msg_hdr };
        let in_pieces =
            (done as c_uint) < self.count && pieces::least_of_message(fd, header, flags) > 1;
        if in_pieces && sys::fetch_timeout(timeout).is_ok() {
            if done == 0
                && let Some(error @ 1..) = pieces::option(fd, libc::SO_ERROR)
            {
                return Err(Errno(error));
            }
            // SAFETY: the caller's contract.
            return unsafe {
                let received = receive_message(fd, header, flags)?;
                (*message).msg_len = received as c_uint;
                Ok(1)
            };
        }
        receive(fd, flags, done > 0, |flags| {
            // SAFETY: the caller's contract.
            unsafe { self.receive(fd, done, flags, timeout) }
        })
    }

    /// Sends all messages.
    unsafe fn send_all(self, fd: c_int, flags: c_int) -> SysResult {
        let mut done = 0;
        while done < self.count as usize {
            // SAFETY: the caller's contract, here and below.
            let result = match unsafe { self.send(fd, done, flags | libc::MSG_DONTWAIT) } {
                // SAFETY: the caller's contract; this many are sent, the last of them perhaps in
                // part.
                Ok(count) => match unsafe { self.finish(fd, done + count - 1, flags) } {
                    true => Ok(count),
                    false => return Ok(done + count),
                },
                // SAFETY: the caller's contract.
                Err(Errno(libc::EAGAIN)) => match unsafe { self.send_one(fd, done, flags) } {
                    Ok(false) => return Ok(done + 1),
                    result => result.map(usize::from),
                },
                result => result,
            };
            match result {
                Ok(count) => done += count,
                Err(_) if done > 0 => break,
                Err(error) => return Err(error),
            }
        }
        Ok(done)
    }

    /// Sends one message, when it can be sent. Returns whether all of it is sent.
    unsafe fn send_one(self, fd: c_int, index: usize, flags: c_int) -> Result<bool, Errno> {
        // SAFETY: the caller's contract; the kernel has accepted the message.
        unsafe {
            let message = self.get(index);
            let sent = send_message(fd, &raw const (*message).msg_hdr, flags)?;
            (*message).msg_len = sent as c_uint;
            Ok(sent >= self.length(index))
        }
    }

    /// Sends the rest of a message that a stream has sent in part. Returns whether all of it is
    /// sent: if not, the call ends with this message.
    unsafe fn finish(self, fd: c_int, index: usize, flags: c_int) -> bool {
        // SAFETY: the caller's contract; the kernel has accepted the message.
        unsafe {
            let message = self.get(index);
            let all = pieces::buffers(&(*message).msg_hdr);
            let done = pieces::send_rest(fd, all, (*message).msg_len as usize, flags, None);
            (*message).msg_len = done as c_uint;
            done >= self.length(index)
        }
    }

    /// Returns the number of bytes of a message that the kernel has accepted.
    unsafe fn length(self, index: usize) -> usize {
        // SAFETY: the caller's contract.
        let all = unsafe { pieces::buffers(&(*self.get(index)).msg_hdr) };
        all.iter().map(|buffer| buffer.iov_len).sum()
    }
}
