//! Fresh descriptors of each kind: the end that is tried, and its peer.

use std::ffi::{CStr, CString};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStringExt;

use crate::common::sys::{check, own};

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    Tcp,
    Unix,
    Udp,
    UnixDatagram,
    Seqpacket,
    Pipe,
    /// A raw terminal with these `VMIN` and `VTIME`.
    Raw(u8, u8),
    Cooked,
    /// The other side of a raw terminal.
    Master,
    Event,
    Timer,
    /// A regular file without a name, at its beginning.
    File,
}

pub const SOCKETS: [Kind; 5] = [
    Kind::Tcp,
    Kind::Unix,
    Kind::Udp,
    Kind::UnixDatagram,
    Kind::Seqpacket,
];

pub const OTHERS: [Kind; 11] = [
    Kind::Pipe,
    Kind::Raw(1, 0),
    Kind::Raw(0, 0),
    Kind::Raw(0, 1),
    Kind::Raw(5, 0),
    Kind::Raw(5, 1),
    Kind::Cooked,
    Kind::Master,
    Kind::Event,
    Kind::Timer,
    Kind::File,
];

impl Kind {
    pub fn is_socket(self) -> bool {
        SOCKETS.contains(&self)
    }

    /// Returns whether messages can pass descriptors.
    pub fn is_unix(self) -> bool {
        matches!(self, Kind::Unix | Kind::UnixDatagram | Kind::Seqpacket)
    }

    pub fn is_terminal(self) -> bool {
        matches!(self, Kind::Raw(..) | Kind::Cooked | Kind::Master)
    }
}

/// The end that is tried, and its peer, if it has one.
pub struct Pair {
    pub own: OwnedFd,
    pub peer: Option<OwnedFd>,
}

impl Pair {
    pub fn new(kind: Kind, reads: bool) -> Pair {
        match kind {
            Kind::Tcp => tcp(),
            Kind::Udp => udp(),
            Kind::Unix => unix(libc::SOCK_STREAM),
            Kind::UnixDatagram => unix(libc::SOCK_DGRAM),
            Kind::Seqpacket => unix(libc::SOCK_SEQPACKET),
            Kind::Pipe => pipe(reads),
            Kind::Raw(min, time) => terminal(Some((min, time)), false),
            Kind::Cooked => terminal(None, false),
            Kind::Master => terminal(Some((1, 0)), true),
            // SAFETY: no pointers.
            Kind::Event => alone(unsafe { libc::eventfd(0, 0) }),
            // SAFETY: no pointers.
            Kind::Timer => alone(unsafe { libc::timerfd_create(libc::CLOCK_MONOTONIC, 0) }),
            Kind::File => alone(file()),
        }
    }

    pub fn fd(&self) -> RawFd {
        self.own.as_raw_fd()
    }

    /// Returns the peer's number; -1: it is closed.
    pub fn peer_fd(&self) -> RawFd {
        self.peer.as_ref().map_or(-1, AsRawFd::as_raw_fd)
    }
}

fn alone(fd: RawFd) -> Pair {
    Pair {
        own: own(fd).unwrap(),
        peer: None,
    }
}

fn file() -> RawFd {
    let folder = CString::new(std::env::temp_dir().into_os_string().into_vec()).unwrap();
    // SAFETY: a C string.
    unsafe { libc::open(folder.as_ptr(), libc::O_TMPFILE | libc::O_RDWR, 0o600) }
}

fn both(own: OwnedFd, peer: OwnedFd) -> Pair {
    Pair {
        own,
        peer: Some(peer),
    }
}

fn tcp() -> Pair {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let own = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (peer, _) = listener.accept().unwrap();
    for stream in [&own, &peer] {
        stream.set_nodelay(true).unwrap();
    }
    both(own.into(), peer.into())
}

fn udp() -> Pair {
    let [own, peer] = [(); 2].map(|()| UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    own.connect(peer.local_addr().unwrap()).unwrap();
    peer.connect(own.local_addr().unwrap()).unwrap();
    both(own.into(), peer.into())
}

fn unix(kind: libc::c_int) -> Pair {
    let mut fds = [-1; 2];
    // SAFETY: room for two.
    check(unsafe { libc::socketpair(libc::AF_UNIX, kind, 0, fds.as_mut_ptr()) }).unwrap();
    both(own(fds[0]).unwrap(), own(fds[1]).unwrap())
}

fn pipe(reads: bool) -> Pair {
    let (reader, writer) = std::io::pipe().unwrap();
    match reads {
        true => both(reader.into(), writer.into()),
        false => both(writer.into(), reader.into()),
    }
}

/// A terminal and its other side, in the order asked for.
fn terminal(raw: Option<(u8, u8)>, other_side: bool) -> Pair {
    let mut name = [0; 64];
    // SAFETY: room for the name; a valid structure.
    let (master, slave) = unsafe {
        let master = own(libc::posix_openpt(libc::O_RDWR | libc::O_NOCTTY)).unwrap();
        let fd = master.as_raw_fd();
        check(libc::grantpt(fd)).unwrap();
        check(libc::unlockpt(fd)).unwrap();
        assert_eq!(libc::ptsname_r(fd, name.as_mut_ptr(), name.len()), 0);
        let name = CStr::from_ptr(name.as_ptr());
        let slave = own(libc::open(name.as_ptr(), libc::O_RDWR | libc::O_NOCTTY)).unwrap();
        let mut settings = std::mem::zeroed::<libc::termios>();
        check(libc::tcgetattr(slave.as_raw_fd(), &mut settings)).unwrap();
        settings.c_lflag &= !libc::ECHO;
        if let Some((min, time)) = raw {
            libc::cfmakeraw(&mut settings);
            settings.c_cc[libc::VMIN] = min;
            settings.c_cc[libc::VTIME] = time;
        }
        check(libc::tcsetattr(slave.as_raw_fd(), libc::TCSANOW, &settings)).unwrap();
        (master, slave)
    };
    match other_side {
        true => both(master, slave),
        false => both(slave, master),
    }
}

/// Returns a socket of this number again, to be closed by a reset.
pub fn reset(peer: OwnedFd) {
    let linger = libc::linger {
        l_onoff: 1,
        l_linger: 0,
    };
    crate::common::sys::set_socket_option(&peer, libc::SOL_SOCKET, libc::SO_LINGER, &linger);
    // SAFETY: ours.
    drop(unsafe { OwnedFd::from_raw_fd(peer.into_raw_fd()) });
}
