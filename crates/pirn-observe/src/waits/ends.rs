//! What is at the ends of a descriptor: a socket's addresses, a file's path.
//!
//! The thread that makes a dump may have a table of descriptors of its own, as the server's threads
//! do. `/proc/self` is the program's table, `/proc/thread-self` the caller's; a socket that is not
//! the same in both is copied into the caller's before it is asked for its addresses.

use core::ffi::c_int;
use core::mem::ManuallyDrop;
use pirn_dump::Ends;
use pirn_rt::sys::call;
use std::fs;
use std::net::TcpStream;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::UnixStream;

/// Returns what the descriptor with this number leads to; `None` if it is not open.
pub(super) fn of(fd: c_int) -> Option<Ends> {
    let link = link("self", fd)?;
    if !link.starts_with("socket:") {
        return Some(Ends {
            local: link,
            peer: String::new(),
        });
    }
    let is_it = |fd| self::link("thread-self", fd).as_ref() == Some(&link);
    let copy = match is_it(fd) {
        true => None,
        false => copy_from_process(fd),
    };
    let here = copy.as_ref().map_or(fd, AsRawFd::as_raw_fd);
    // Another file may have got the number by now.
    let named = |peer| is_it(here).then(|| address(here, peer)).flatten();
    let (local, peer) = (named(false), named(true).unwrap_or_default());
    Some(Ends {
        // A pair of sockets has no names: then the kernel's number of it.
        local: local.unwrap_or(link),
        peer,
    })
}

/// Copies a descriptor of the process into the calling thread's table. A copy of a socket holds no
/// locks, which closing it could give up.
pub(crate) fn copy_from_process(fd: c_int) -> Option<OwnedFd> {
    // SAFETY: no pointers; each call returns a new descriptor of the calling thread's table.
    unsafe {
        let process = call!(libc::SYS_pidfd_open, std::process::id(), 0).ok()?;
        let process = OwnedFd::from_raw_fd(process as c_int);
        let copy = call!(libc::SYS_pidfd_getfd, process.as_raw_fd(), fd, 0).ok()?;
        Some(OwnedFd::from_raw_fd(copy as c_int))
    }
}

/// Returns where a descriptor leads to in the table of `whose`: `self` or `thread-self`.
fn link(whose: &str, fd: c_int) -> Option<String> {
    let target = fs::read_link(format!("/proc/{whose}/fd/{fd}")).ok()?;
    Some(target.to_string_lossy().into_owned())
}

/// Returns the address of a socket, or of its peer, as text: `127.0.0.1:80`, `[::1]:80`,
/// `unix:/run/x`, `unix:@x`. `None`: it has none, or one of another family.
fn address(socket: c_int, peer: bool) -> Option<String> {
    // SAFETY: they are not dropped, so the socket stays open; `std` looks at the family.
    let (internet, unix) = unsafe {
        (
            ManuallyDrop::new(TcpStream::from_raw_fd(socket)),
            ManuallyDrop::new(UnixStream::from_raw_fd(socket)),
        )
    };
    let address = match peer {
        true => internet.peer_addr(),
        false => internet.local_addr(),
    };
    if let Ok(address) = address {
        return Some(address.to_string());
    }
    let address = match peer {
        true => unix.peer_addr(),
        false => unix.local_addr(),
    };
    let address = address.ok()?;
    if let Some(name) = address.as_abstract_name() {
        return Some(format!("unix:@{}", String::from_utf8_lossy(name)));
    }
    address
        .as_pathname()
        .map(|path| format!("unix:{}", path.display()))
}

#[cfg(test)]
mod tests;
