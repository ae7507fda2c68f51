//! The calls that receive, with all flags that mean something.

use std::mem::zeroed;
use std::os::fd::AsRawFd;
use std::ptr::null_mut;

use crate::common::sys::{errno, own};
use crate::script::Outcome;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Receive {
    Read,
    Readv,
    /// `preadv2` at the position of the descriptor, with these flags.
    Preadv2(i32),
    Pread,
    Recv(i32),
    Recvfrom(i32),
    Recvmsg(i32),
    /// Two messages.
    Recvmmsg(i32),
    /// Two messages, for these seconds, which the kernel looks at after each message.
    RecvmmsgFor(i32, i64),
    /// Into a pipe.
    Splice,
}

/// Combinations of flags for the calls that have them.
const FLAGS: [i32; 13] = [
    0,
    libc::MSG_PEEK,
    libc::MSG_WAITALL,
    libc::MSG_WAITALL | libc::MSG_PEEK,
    libc::MSG_WAITALL | libc::MSG_TRUNC,
    libc::MSG_WAITALL | libc::MSG_DONTWAIT,
    libc::MSG_DONTWAIT,
    libc::MSG_TRUNC,
    libc::MSG_OOB,
    libc::MSG_ERRQUEUE,
    libc::MSG_ERRQUEUE | libc::MSG_WAITALL,
    libc::MSG_CMSG_CLOEXEC,
    libc::MSG_CMSG_CLOEXEC | libc::MSG_WAITALL,
];

/// Returns all calls.
pub fn all() -> Vec<Receive> {
    let mut all = vec![
        Receive::Read,
        Receive::Readv,
        Receive::Pread,
        Receive::Splice,
    ];
    all.extend([0, libc::RWF_NOWAIT].map(Receive::Preadv2));
    for flags in FLAGS {
        all.extend([Receive::Recv(flags), Receive::Recvfrom(flags)]);
        all.extend([Receive::Recvmsg(flags), Receive::Recvmmsg(flags)]);
        all.push(Receive::Recvmmsg(flags | libc::MSG_WAITFORONE));
        all.extend([0, 100, -1].map(|seconds| Receive::RecvmmsgFor(flags, seconds)));
    }
    all
}

impl Receive {
    /// Makes the call, with room for `size` bytes, and returns all that it tells.
    pub fn make(self, fd: i32, size: usize) -> Outcome {
        let mut bytes = [b'.'; 256];
        let mut address = [0u64; 16];
        let mut length = size_of_val(&address) as u32;
        let (place, name) = (bytes.as_mut_ptr().cast(), address.as_mut_ptr());
        let half = size / 2;
        // SAFETY: parts of the buffer.
        let mut parts = unsafe { [part(place, half), part(place.byte_add(half), size - half)] };
        // SAFETY: all zeros is a message without anything.
        let mut messages: [libc::mmsghdr; 2] = unsafe { zeroed() };
        let mut others = [part(parts[0].iov_base.wrapping_byte_add(128), size)];
        let buffers: [(*mut libc::iovec, usize); 2] =
            [(parts.as_mut_ptr(), 2), (others.as_mut_ptr(), 1)];
        let mut control = [[0u64; 8]; 2];
        for i in 0..2 {
            let header = &mut messages[i].msg_hdr;
            (header.msg_iov, header.msg_iovlen) = buffers[i];
            header.msg_control = control[i].as_mut_ptr().cast();
            header.msg_controllen = size_of_val(&control[i]) as _;
        }
        let mut time = libc::timespec {
            tv_sec: match self {
                Receive::RecvmmsgFor(_, seconds) => seconds,
                _ => 0,
            },
            tv_nsec: 0,
        };
        let first = &raw mut messages[0].msg_hdr;
        let iov = parts.as_ptr();
        // SAFETY: the buffers and places above.
        let result = unsafe {
            match self {
                Receive::Read => libc::read(fd, place, size),
                Receive::Readv => libc::readv(fd, iov, 2),
                Receive::Pread => libc::pread(fd, place, size, 0),
                Receive::Preadv2(flags) => libc::preadv2(fd, iov, 2, -1, flags),
                Receive::Recv(flags) => libc::recv(fd, place, size, flags),
                Receive::Recvfrom(flags) => {
                    libc::recvfrom(fd, place, size, flags, name.cast(), &mut length)
                }
                Receive::Recvmsg(flags) => libc::recvmsg(fd, first, flags),
                Receive::Recvmmsg(flags) => {
                    libc::recvmmsg(fd, messages.as_mut_ptr(), 2, flags, null_mut()) as isize
                }
                Receive::RecvmmsgFor(flags, _) => {
                    libc::recvmmsg(fd, messages.as_mut_ptr(), 2, flags, &mut time) as isize
                }
                Receive::Splice => splice(fd, size),
            }
        };
        let mut outcome = vec![result as i64];
        if result < 0 {
            outcome.push(errno().into());
        } else {
            if matches!(self, Receive::Recvfrom(_)) {
                outcome.push(length.into());
            }
            // All of them, or less.
            outcome.push((time.tv_sec + 49) / 50);
            for (message, control) in messages.iter().zip(&control) {
                outcome.extend(passed(&control[..message.msg_hdr.msg_controllen / 8]));
                outcome
                    .push(i64::from(message.msg_len) << 32 | i64::from(message.msg_hdr.msg_flags));
                outcome.push(message.msg_hdr.msg_controllen as i64);
            }
        }
        outcome.extend(bytes.map(i64::from));
        outcome
    }
}

/// Closes the descriptors of which a message's control data tell. Returns their flags.
fn passed(control: &[u64]) -> Outcome {
    const RIGHTS: u64 = (libc::SCM_RIGHTS as u64) << 32 | libc::SOL_SOCKET as u64;
    let [length, RIGHTS, numbers @ ..] = control else {
        return vec![];
    };
    let numbers = numbers
        .iter()
        .flat_map(|two| [*two as i32, (two >> 32) as i32]);
    let flags = |fd| {
        let fd = own(fd).unwrap();
        // SAFETY: no pointers.
        unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFD) }.into()
    };
    let count = (*length as usize - 16) / 4;
    numbers.take(count).map(flags).collect()
}

fn part(place: *mut libc::c_void, size: usize) -> libc::iovec {
    libc::iovec {
        iov_base: place,
        iov_len: size,
    }
}

fn splice(fd: i32, size: usize) -> isize {
    let (_reader, writer) = std::io::pipe().unwrap();
    let to = writer.as_raw_fd();
    // SAFETY: no pointers.
    unsafe { libc::splice(fd, null_mut(), to, null_mut(), size, 0) }
}
