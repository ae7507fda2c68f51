//! The calls that send, with their flags.

use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::ptr::{null, null_mut};

use crate::common::sys::errno;
use crate::script::Outcome;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    Write,
    Writev,
    /// `pwritev2` at the position of the descriptor, with these flags.
    Pwritev2(i32),
    Pwrite,
    Send(i32),
    Sendto(i32),
    Sendmsg(i32),
    /// Two messages.
    Sendmmsg(i32),
    /// From a file.
    Sendfile,
    /// From a pipe.
    Splice,
    /// From a pipe to a pipe.
    Tee,
    Vmsplice,
}

const FLAGS: [i32; 8] = [
    0,
    libc::MSG_DONTWAIT,
    libc::MSG_NOSIGNAL | libc::MSG_MORE,
    libc::MSG_OOB,
    libc::MSG_EOR,
    libc::MSG_CONFIRM,
    libc::MSG_DONTROUTE,
    libc::MSG_ZEROCOPY,
];

/// Returns all calls.
pub fn all() -> Vec<How> {
    let mut all = vec![How::Write, How::Writev, How::Pwrite, How::Sendfile];
    all.extend([How::Splice, How::Tee, How::Vmsplice]);
    all.extend([0, libc::RWF_NOWAIT].map(How::Pwritev2));
    for flags in FLAGS {
        all.extend([How::Send(flags), How::Sendto(flags)]);
        all.extend([How::Sendmsg(flags), How::Sendmmsg(flags)]);
    }
    all
}

impl How {
    /// Returns whether the kernel may send from the caller's memory, and tells when it has.
    pub fn is_without_copies(self) -> bool {
        let (How::Send(flags) | How::Sendto(flags) | How::Sendmsg(flags) | How::Sendmmsg(flags)) =
            self
        else {
            return false;
        };
        flags & libc::MSG_ZEROCOPY != 0
    }
}

/// How much a call has done of what was asked for. In between, how much depends on the kernel's
/// buffers.
fn part_of(result: isize, size: usize) -> i64 {
    match result {
        done if done > 0 && (done as usize) < size => 1,
        0 => 0,
        _ => 2,
    }
}

impl How {
    /// Sends `size` bytes, and returns what the call tells.
    pub fn make(self, fd: i32, size: usize) -> Outcome {
        let mut bytes: Vec<u8> = (0..size).map(|i| b'a' + (i % 26) as u8).collect();
        let place = bytes.as_mut_ptr().cast::<libc::c_void>();
        let half = size / 2;
        let part = |from: usize, to: usize| libc::iovec {
            iov_base: place.wrapping_byte_add(from),
            iov_len: to - from,
        };
        let mut parts = [part(0, half), part(half, size)];
        // SAFETY: all zeros is a message without anything.
        let mut messages: [libc::mmsghdr; 2] = unsafe { zeroed() };
        for message in &mut messages {
            message.msg_hdr.msg_iov = parts.as_mut_ptr();
            message.msg_hdr.msg_iovlen = 2;
        }
        let iov = parts.as_ptr();
        // SAFETY: the buffers above.
        let result = unsafe {
            match self {
                How::Write => libc::write(fd, place, size),
                How::Writev => libc::writev(fd, iov, 2),
                How::Pwrite => libc::pwrite(fd, place, size, 0),
                How::Pwritev2(flags) => libc::pwritev2(fd, iov, 2, -1, flags),
                How::Send(flags) => libc::send(fd, place, size, flags),
                How::Sendto(flags) => libc::sendto(fd, place, size, flags, null(), 0),
                How::Sendmsg(flags) => libc::sendmsg(fd, &messages[0].msg_hdr, flags),
                How::Sendmmsg(flags) => {
                    libc::sendmmsg(fd, messages.as_mut_ptr(), 2, flags) as isize
                }
                How::Sendfile => sendfile(fd, &bytes),
                How::Splice | How::Tee => moved(fd, &bytes, self == How::Tee),
                How::Vmsplice => libc::vmsplice(fd, iov, 2, 0),
            }
        };
        if result < 0 {
            return vec![-1, errno().into()];
        }
        if let How::Sendmmsg(_) = self {
            let lengths = messages.map(|message| part_of(message.msg_len as isize, size));
            return vec![result as i64, lengths[0], lengths[1]];
        }
        vec![part_of(result, size)]
    }
}

fn sendfile(fd: i32, bytes: &[u8]) -> isize {
    // SAFETY: a name.
    let file =
        crate::common::sys::own(unsafe { libc::memfd_create(c"source".as_ptr(), 0) }).unwrap();
    crate::common::sys::write(file.as_raw_fd(), bytes).unwrap();
    let mut from = 0;
    // SAFETY: room for the offset.
    unsafe { libc::sendfile(fd, file.as_raw_fd(), &mut from, bytes.len()) }
}

/// Moves, or copies, what a pipe has, at most 4096 bytes.
fn moved(fd: i32, bytes: &[u8], copies: bool) -> isize {
    let (reader, writer) = std::io::pipe().unwrap();
    let some = &bytes[..bytes.len().min(4096)];
    crate::common::sys::write(writer.as_raw_fd(), some).unwrap();
    drop(writer);
    let from = reader.as_raw_fd();
    // SAFETY: no offsets.
    unsafe {
        match copies {
            true => libc::tee(from, fd, bytes.len(), 0),
            false => libc::splice(from, null_mut(), fd, null_mut(), bytes.len(), 0),
        }
    }
}
