//! What is at the ends of a descriptor: a socket's addresses, a file's path.
//!
//! The thread that makes a dump may have a table of descriptors of its own, as the server's threads
//! do. `/proc/self` is the program's table, `/proc/thread-self` the caller's; a socket that is not
//! the same in both is copied into the caller's before it is asked for its addresses.

use core::ffi::c_int;
use core::mem;
use pirn_dump::Ends;
use pirn_rt::sys::{SysResult, call};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddrV4, SocketAddrV6};

/// An address of any family.
#[repr(C, align(8))]
struct Address([u8; size_of::<libc::sockaddr_storage>()]);

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
        false => copy(fd),
    };
    let here = copy.as_ref().map_or(fd, |copy| copy.0);
    // Another file may have got the number by now.
    let named = |number| is_it(here).then(|| address(here, number)).flatten();
    let local = named(libc::SYS_getsockname).filter(|name| !name.is_empty());
    let peer = named(libc::SYS_getpeername).unwrap_or_default();
    Some(Ends {
        // A pair of sockets has no names: then the kernel's number of it.
        local: local.unwrap_or(link),
        peer,
    })
}

/// A descriptor of the calling thread's table, which it closes.
struct Copied(c_int);

impl Drop for Copied {
    fn drop(&mut self) {
        // SAFETY: our own descriptor. The program does not know it, so neither does our table.
        let _ = unsafe { call!(libc::SYS_close, self.0) };
    }
}

/// Copies a descriptor of the program into the calling thread's table. A copy of a socket holds no
/// locks, which closing it could give up.
fn copy(fd: c_int) -> Option<Copied> {
    // SAFETY: no pointers.
    unsafe {
        let process = call!(libc::SYS_pidfd_open, std::process::id(), 0).ok()?;
        let process = Copied(process as c_int);
        let copy = call!(libc::SYS_pidfd_getfd, process.0, fd, 0).ok()?;
        Some(Copied(copy as c_int))
    }
}

/// Returns where a descriptor leads to in the table of `whose`: `self` or `thread-self`.
fn link(whose: &str, fd: c_int) -> Option<String> {
    let path = format!("/proc/{whose}/fd/{fd}\0");
    let mut target = [0u8; 512];
    let (to, most) = (target.as_mut_ptr(), target.len());
    // SAFETY: a path with a zero at its end, and memory of that length.
    let read: SysResult = unsafe { call!(libc::SYS_readlink, path.as_ptr(), to, most) };
    let length = read.ok()?;
    Some(String::from_utf8_lossy(&target[..length]).into_owned())
}

/// Returns the address that this system call gives, as people write it.
fn address(fd: c_int, number: libc::c_long) -> Option<String> {
    let mut address = Address([0; _]);
    let mut length = size_of::<Address>() as libc::socklen_t;
    let to = address.0.as_mut_ptr();
    // SAFETY: memory of that length.
    unsafe { call!(number, fd, to, &raw mut length) }.ok()?;
    let bytes = &address.0[..(length as usize).min(size_of::<Address>())];
    Some(shown(bytes))
}

/// Returns an address as people write it: `127.0.0.1:80`, `[::1]:80`, `unix:/run/x`, `unix:@x`.
fn shown(address: &[u8]) -> String {
    let [family, more, rest @ ..] = address else {
        return String::new();
    };
    let word = |at: usize| rest.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    let port = rest
        .first_chunk()
        .map_or(0, |bytes| u16::from_be_bytes(*bytes));
    match c_int::from(u16::from_ne_bytes([*family, *more])) {
        libc::AF_INET => {
            let host = Ipv4Addr::from(word(2).unwrap_or([0; 4]));
            SocketAddrV4::new(host, port).to_string()
        }
        libc::AF_INET6 => {
            const { assert!(mem::offset_of!(libc::sockaddr_in6, sin6_addr) == 8) };
            let host: Option<[u8; 16]> = rest.get(6..22).and_then(|bytes| bytes.try_into().ok());
            let scope = u32::from_ne_bytes(word(22).unwrap_or([0; 4]));
            let host = Ipv6Addr::from(host.unwrap_or([0; 16]));
            SocketAddrV6::new(host, port, 0, scope).to_string()
        }
        libc::AF_UNIX => match rest {
            [] => String::new(),
            [0, name @ ..] => format!("unix:@{}", String::from_utf8_lossy(name)),
            path => {
                let path = path.split(|&byte| byte == 0).next().unwrap_or_default();
                format!("unix:{}", String::from_utf8_lossy(path))
            }
        },
        libc::AF_NETLINK => "netlink".into(),
        other => format!("family {other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream, UdpSocket};
    use std::os::fd::AsRawFd;
    use std::os::unix::net::{UnixListener, UnixStream};

    fn pair(fd: &impl AsRawFd) -> (String, String) {
        let ends = of(fd.as_raw_fd()).unwrap();
        (ends.local, ends.peer)
    }

    #[test]
    fn sockets_have_addresses() {
        for host in ["127.0.0.1:0", "[::1]:0"] {
            let Ok(listener) = TcpListener::bind(host) else {
                println!("no {host} here: left out");
                continue;
            };
            let here = listener.local_addr().unwrap().to_string();
            assert_eq!(pair(&listener), (here.clone(), String::new()));
            let stream = TcpStream::connect(&here).unwrap();
            let there = stream.local_addr().unwrap().to_string();
            assert_eq!(pair(&stream), (there, here));
        }
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        assert_eq!(pair(&socket).0, socket.local_addr().unwrap().to_string());
    }

    #[test]
    fn unix_sockets_have_paths_or_numbers() {
        let (one, _two) = UnixStream::pair().unwrap();
        assert!(pair(&one).0.starts_with("socket:["), "{:?}", pair(&one));
        let path = std::env::temp_dir().join(format!("pirn-ends-{}", std::process::id()));
        let listener = UnixListener::bind(&path).unwrap();
        assert_eq!(pair(&listener).0, format!("unix:{}", path.display()));
        let stream = UnixStream::connect(&path).unwrap();
        assert_eq!(pair(&stream).1, format!("unix:{}", path.display()));
        std::fs::remove_file(path).unwrap();
        assert_eq!(shown(b"\x01\x00\x00abc"), "unix:@abc");
    }

    #[test]
    fn sockets_are_the_programs_whatever_table_the_caller_has() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let (fd, here) = (listener.as_raw_fd(), listener.local_addr().unwrap());
        let (other, _pair) = UnixStream::pair().unwrap();
        let asker = std::thread::spawn(move || {
            // SAFETY: no pointers; the numbers are this thread's own from here on.
            unsafe {
                call!(libc::SYS_unshare, libc::CLONE_FILES).unwrap();
                call!(libc::SYS_dup2, other.as_raw_fd(), fd).unwrap();
            }
            let ends = of(fd).unwrap();
            (ends, other)
        });
        let (ends, _other) = asker.join().unwrap();
        assert_eq!((ends.local, ends.peer), (here.to_string(), String::new()));
    }

    #[test]
    fn files_have_paths_and_closed_ones_nothing() {
        let null = std::fs::File::open("/dev/null").unwrap();
        assert_eq!(pair(&null), ("/dev/null".into(), String::new()));
        assert_eq!(of(-1), None);
        let (reader, _writer) = std::io::pipe().unwrap();
        assert!(pair(&reader).0.starts_with("pipe:["));
    }
}
