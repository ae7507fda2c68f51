//! Reading and writing once, for tasks of async code: what would wait for another party is
//! `EAGAIN`, whatever the descriptor's own flags say, which stay as they are.

use crate::io::pieces::message_of;
use crate::io::transfer::{HERE, is_unsupported, now, on_file, unflagged};
use crate::io::tty;
use core::ffi::{c_int, c_long};
use libc::iovec;
use pirn_rt::blocking::{fds, pool};
use pirn_rt::sys::{Errno, SysResult, call, uninterrupted};

/// A way to try a read or a write.
pub struct Transfer {
    /// The calls for a socket: one buffer, and several.
    one: c_long,
    several: c_long,
    /// The flags of these two.
    flags: c_int,
    /// The calls for other descriptors: that with flags, and the plain one.
    flagged: c_long,
    plain: c_long,
    /// What `poll` is asked where the file does not know the flag.
    events: i16,
}

pub const READ: Transfer = Transfer {
    one: libc::SYS_recvfrom,
    several: libc::SYS_recvmsg,
    flags: libc::MSG_DONTWAIT,
    flagged: libc::SYS_preadv2,
    plain: libc::SYS_readv,
    events: libc::POLLIN,
};

/// Without a signal.
pub const WRITE: Transfer = Transfer {
    one: libc::SYS_sendto,
    several: libc::SYS_sendmsg,
    flags: libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL,
    flagged: libc::SYS_pwritev2,
    plain: libc::SYS_writev,
    events: libc::POLLOUT,
};

/// Ends what this side writes to a socket.
pub fn end_writing(fd: c_int) -> SysResult {
    // SAFETY: no pointers.
    unsafe { call!(libc::SYS_shutdown, fd, libc::SHUT_WR) }
}

impl Transfer {
    /// Reads from or writes to a socket without waiting. `ENOTSOCK`: [`on_any`](Self::on_any) does
    /// it.
    ///
    /// # Safety
    /// The buffers are valid for writes, or for reads.
    pub unsafe fn on_socket(&self, fd: c_int, buffers: &[iovec]) -> SysResult {
        if let [buffer] = buffers {
            let (address, length) = (buffer.iov_base, buffer.iov_len);
            return uninterrupted(|| {
                // SAFETY: the caller's contract. No address, and no room for one.
                unsafe { call!(self.one, fd, address, length, self.flags, 0, 0) }
            });
        }
        let mut message = message_of(buffers.as_ptr(), buffers.len());
        let message = &raw mut message;
        // SAFETY: the caller's contract; the message is valid for the call.
        uninterrupted(|| unsafe { call!(self.several, fd, message, self.flags) })
    }

    /// Reads from or writes to any descriptor without waiting for another party. A file may wait
    /// for its disk: then a virtual thread parks.
    ///
    /// # Safety
    /// The buffers are valid for writes, or for reads.
    pub unsafe fn on_any(&self, fd: c_int, buffers: &[iovec]) -> SysResult {
        let (iov, count) = (buffers.as_ptr(), buffers.len() as c_int);
        // SAFETY: the caller's contract, here and below.
        let plain = || uninterrupted(|| unsafe { call!(self.plain, fd, iov, count) });
        // SAFETY: the caller's contract.
        let result = match uninterrupted(|| unsafe { now(self.flagged, fd, iov, count, HERE) }) {
            Err(e) if is_unsupported(e) => unflagged(fd, self.events, plain),
            result => result,
        };
        match result {
            Err(tty::TERMINAL) if self.events == libc::POLLIN => tty::read_once(fd, buffers),
            Err(tty::TERMINAL) => tty::write_once(fd, buffers),
            Err(Errno(libc::EPERM | libc::EAGAIN)) if fds::may_be_file(fd) => {
                pool::bounded(on_file(self.plain), plain)
            }
            result => result,
        }
    }
}
