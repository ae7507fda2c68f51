//! `setsockopt` and `getsockopt`: what the network means by some options, and what it only keeps.

use super::socket::{self, Kind, Socket, is_ours};
use super::with;
use core::ffi::{c_int, c_void};
use libc::socklen_t;
use pirn_rt::sys::{Errno, SysResult, call};

/// What a program has set.
#[derive(Clone, Default)]
pub(super) struct Options(Vec<(c_int, c_int, Vec<u8>)>);

impl Options {
    fn get(&self, level: c_int, option: c_int) -> Option<&[u8]> {
        let found = self.0.iter().find(|it| (it.0, it.1) == (level, option));
        found.map(|it| &*it.2)
    }

    fn set(&mut self, level: c_int, option: c_int, value: Vec<u8>) {
        self.0.retain(|it| (it.0, it.1) != (level, option));
        self.0.push((level, option, value));
    }

    /// Returns an option that is an int, or begins with one.
    pub(super) fn int(&self, level: c_int, option: c_int) -> c_int {
        let bytes = self.get(level, option).and_then(|it| it.first_chunk());
        bytes.map_or(default(level, option), |it| c_int::from_ne_bytes(*it))
    }

    pub(super) fn is_set(&self, option: c_int) -> bool {
        self.int(libc::SOL_SOCKET, option) != 0
    }

    pub(super) fn only_v6(&self) -> bool {
        self.int(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY) != 0
    }

    /// Returns whether a close is a reset (`SO_LINGER` with no time).
    pub(super) fn aborts(&self) -> bool {
        let linger = self.get(libc::SOL_SOCKET, libc::SO_LINGER);
        linger.is_some_and(|it| {
            let [on, time] = [0, 4].map(|at| it.get(at..at + 4));
            on.is_some_and(|it| it != [0; 4]) && time == Some(&[0; 4])
        })
    }
}

/// Returns what Linux has if a program sets nothing.
pub(super) fn default(level: c_int, option: c_int) -> c_int {
    match (level, option) {
        (libc::IPPROTO_TCP, libc::TCP_KEEPIDLE) => 7200,
        (libc::IPPROTO_TCP, libc::TCP_KEEPINTVL) => 75,
        (libc::IPPROTO_TCP, libc::TCP_KEEPCNT) => 9,
        (libc::IPPROTO_TCP, libc::TCP_MAXSEG) => 1460,
        (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_UNICAST_HOPS) => 64,
        (libc::IPPROTO_IP, libc::IP_MULTICAST_TTL | libc::IP_MULTICAST_LOOP) => 1,
        _ => 0,
    }
}

/// Options by which the kernel's own socket acts.
const KERNELS: [c_int; 7] = [
    libc::SO_RCVTIMEO,
    libc::SO_SNDTIMEO,
    libc::SO_RCVLOWAT,
    libc::SO_TYPE,
    libc::SO_ACCEPTCONN,
    libc::SO_RCVBUF,
    libc::SO_SNDBUF,
];

/// Keeps an option. Returns `None` if it is the kernel's.
///
/// # Safety
/// As for `setsockopt`.
pub(super) unsafe fn set(
    fd: c_int,
    level: c_int,
    option: c_int,
    value: *const c_void,
    length: socklen_t,
) -> Option<SysResult> {
    // The sizes of its buffers are those that the window is made for.
    const SIZES: [c_int; 2] = [libc::SO_RCVBUF, libc::SO_SNDBUF];
    if !is_ours(fd)
        || level == libc::SOL_SOCKET && KERNELS.contains(&option) && !SIZES.contains(&option)
    {
        return None;
    }
    if value.is_null() && length > 0 {
        return Some(Err(Errno(libc::EFAULT)));
    }
    let bytes = match length {
        0 => &[],
        // SAFETY: the caller's contract.
        length => unsafe { core::slice::from_raw_parts(value.cast::<u8>(), length as usize) },
    };
    socket::change(fd, |it| it.options.set(level, option, bytes.to_vec()));
    Some(Ok(0))
}

/// Returns the value that the network has for an option; `None`: it is the kernel's.
fn value(socket: &mut Socket, level: c_int, option: c_int, room: usize) -> Option<Vec<u8>> {
    let int = |it: c_int| Some(it.to_ne_bytes().to_vec());
    match (level, option) {
        (libc::SOL_SOCKET, libc::SO_DOMAIN) => int(socket.domain),
        (libc::SOL_SOCKET, libc::SO_PROTOCOL) => int(match socket.kind {
            Kind::Stream => libc::IPPROTO_TCP,
            Kind::Datagram => libc::IPPROTO_UDP,
        }),
        (libc::SOL_SOCKET, option) if KERNELS.contains(&option) => None,
        _ => match socket.options.get(level, option) {
            Some(value) => Some(value.to_vec()),
            None => {
                let mut value = default(level, option).to_ne_bytes().to_vec();
                value.resize(room.max(value.len()), 0);
                Some(value)
            }
        },
    }
}

/// `getsockopt`.
///
/// # Safety
/// As for libc's function.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn getsockopt(
    fd: c_int,
    level: c_int,
    option: c_int,
    to: *mut c_void,
    length: *mut socklen_t,
) -> c_int {
    let kernel = || {
        // SAFETY: the caller's contract.
        socket::to_c(unsafe { call!(libc::SYS_getsockopt, fd, level, option, to, length) })
    };
    if !is_ours(fd) || to.is_null() || length.is_null() {
        return kernel();
    }
    // SAFETY: the caller's contract.
    let room = unsafe { *length } as usize;
    let value = match (level, option) {
        (libc::SOL_SOCKET, libc::SO_ERROR) => {
            let error = with(|net| net.take_error_of(fd));
            Some(error.to_ne_bytes().to_vec())
        }
        _ => socket::change(fd, |it| value(it, level, option, room)).flatten(),
    };
    let Some(value) = value else {
        return kernel();
    };
    let size = value.len().min(room);
    // SAFETY: the caller's contract: so much room is there.
    unsafe {
        value.as_ptr().copy_to_nonoverlapping(to.cast(), size);
        *length = size as socklen_t;
    }
    0
}
