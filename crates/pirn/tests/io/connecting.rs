//! `connect` on a virtual thread: the flags that others see meanwhile, and full queues.

use std::fs;
use std::io::{self, ErrorKind};
use std::iter;
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

use crate::common::sys::{self, inline};
use crate::common::{TempDir, child, on_virtual, watched};
use pirn::thread;

/// Returns the kernel's flags at this moment.
fn true_flags(fd: &impl AsRawFd) -> i32 {
    let fd = fd.as_raw_fd() as usize;
    inline(libc::SYS_fcntl, fd, libc::F_GETFL as usize, 0, 0, 0) as i32
}

#[watched]
fn a_datagram_socket_stays_blocking_while_it_is_connected() {
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let peer = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = peer.local_addr().unwrap();
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(SeqCst) {
                assert_eq!(true_flags(&socket) & libc::O_NONBLOCK, 0);
            }
        });
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    socket.connect(address).unwrap();
                }
            });
        });
        over.store(true, SeqCst);
    });
}

/// Sets or clears `O_NONBLOCK` in one of two ways.
fn set_nonblocking(fd: &impl AsRawFd, by_fcntl: bool, on: bool) {
    if by_fcntl {
        return sys::set_nonblocking(fd, on);
    }
    let on = i32::from(on);
    // SAFETY: reads one int.
    sys::check(unsafe { libc::ioctl(fd.as_raw_fd(), libc::FIONBIO, &on) }).unwrap();
}

#[watched]
fn what_the_program_sets_during_a_connect_holds() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    for i in 0..1000 {
        let socket = tcp_socket();
        std::thread::scope(|scope| {
            scope.spawn(|| set_nonblocking(&socket, i % 2 == 0, true));
            thread::scope(|scope| {
                scope.spawn(|| {
                    let result = connect_to(&socket, port);
                    // The result depends on which came first.
                    assert!([0, libc::EINPROGRESS].contains(&result), "{result}");
                });
            });
        });
        assert_ne!(true_flags(&socket) & libc::O_NONBLOCK, 0, "round {i}");
        drop(listener.accept());
    }
}

#[watched]
fn after_a_connect_the_socket_blocks_as_before() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    on_virtual(move || {
        let socket = tcp_socket();
        assert_eq!(connect_to(&socket, port), 0);
        assert_eq!(true_flags(&socket) & libc::O_NONBLOCK, 0);
        assert_eq!(sys::status_flags(&socket) & libc::O_NONBLOCK, 0);
    });
}

#[watched]
fn a_connect_that_was_begun_without_waiting_can_be_waited_for() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    on_virtual(move || {
        let socket = tcp_socket();
        set_nonblocking(&socket, false, true);
        assert!([0, libc::EINPROGRESS].contains(&connect_to(&socket, port)));
        set_nonblocking(&socket, false, false);
        assert!([0, libc::EISCONN].contains(&connect_to(&socket, port)));
    });
}

fn tcp_socket() -> OwnedFd {
    // SAFETY: no pointers; the descriptor is new, so only this socket owns it.
    unsafe { OwnedFd::from_raw_fd(libc::socket(libc::AF_INET, libc::SOCK_STREAM, 0)) }
}

/// Connects to this machine. Returns the error number.
fn connect_to(socket: &OwnedFd, port: u16) -> i32 {
    let address = libc::sockaddr_in {
        sin_family: libc::AF_INET as u16,
        sin_port: port.to_be(),
        sin_addr: libc::in_addr {
            s_addr: u32::from(Ipv4Addr::LOCALHOST).to_be(),
        },
        sin_zero: [0; 8],
    };
    // SAFETY: an address of that length.
    let result = unsafe {
        let length = size_of_val(&address) as u32;
        libc::connect(socket.as_raw_fd(), (&raw const address).cast(), length)
    };
    if result == 0 { 0 } else { sys::errno() }
}

/// Connects a socket with these flags and this limit of time.
fn unix_connect(path: &Path, flags: i32, limit: Option<Duration>) -> io::Result<UnixStream> {
    // SAFETY: no pointers; the descriptor is new, so only this socket owns it.
    let stream = unsafe {
        UnixStream::from_raw_fd(libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | flags, 0))
    };
    stream.set_write_timeout(limit).unwrap();
    // SAFETY: all zeros is a valid address.
    let mut address: libc::sockaddr_un = unsafe { std::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as u16;
    let bytes = path.as_os_str().as_encoded_bytes();
    for (to, from) in address.sun_path.iter_mut().zip(bytes) {
        *to = *from as libc::c_char;
    }
    // SAFETY: an address of that length.
    sys::check(unsafe {
        let length = size_of_val(&address) as u32;
        libc::connect(stream.as_raw_fd(), (&raw const address).cast(), length)
    })?;
    Ok(stream)
}

/// Returns a listener whose queue is full, and the connections that fill it. How many these are
/// depends on the kernel.
fn full_listener(path: &Path) -> (UnixListener, Vec<UnixStream>) {
    let listener = UnixListener::bind(path).unwrap();
    // SAFETY: no pointers.
    sys::check(unsafe { libc::listen(listener.as_raw_fd(), 0) }).unwrap();
    let filling = iter::from_fn(|| unix_connect(path, libc::SOCK_NONBLOCK, None).ok());
    let filling = filling.collect();
    (listener, filling)
}

/// Returns the number of platform threads that wait on behalf of virtual ones.
fn blocking_threads() -> usize {
    let tasks = fs::read_dir("/proc/self/task").unwrap();
    let names = tasks.map(|task| fs::read_to_string(task.unwrap().path().join("comm")));
    names
        .filter(|name| {
            name.as_ref()
                .is_ok_and(|name| name.trim_end() == "pirn-blocking")
        })
        .count()
}

#[watched]
fn callers_of_a_unix_listener_whose_queue_is_full_take_no_threads() {
    const CALLERS: usize = 300;
    child::isolated(&[], || {
        let folder = TempDir::new("full");
        let path = folder.join("socket");
        let (listener, first) = full_listener(&path);
        let (begun, connected) = (&AtomicUsize::new(0), &AtomicUsize::new(0));
        let path = &path;
        thread::scope(|scope| {
            for _ in 0..CALLERS {
                scope.spawn(move || {
                    begun.fetch_add(1, SeqCst);
                    let stream = UnixStream::connect(path).unwrap();
                    connected.fetch_add(1, SeqCst);
                    stream
                });
            }
            scope.spawn(move || {
                while begun.load(SeqCst) < CALLERS {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(20));
                assert_eq!(connected.load(SeqCst), 0);
                // A virtual thread would need such a thread to read the folder.
                let count = std::thread::spawn(blocking_threads);
                assert_eq!(count.join().unwrap(), 0);
                for _ in 0..CALLERS + first.len() {
                    listener.accept().unwrap();
                }
            });
        });
        assert_eq!(connected.load(SeqCst), CALLERS);
    });
}

#[watched]
fn a_caller_of_a_full_queue_gives_up_when_it_is_interrupted() {
    let folder = TempDir::new("full");
    let path = folder.join("socket");
    let (_listener, _first) = full_listener(&path);
    let caller = thread::spawn(move || UnixStream::connect(path).map(drop));
    thread::sleep(Duration::from_millis(5));
    caller.thread().interrupt();
    let error = caller.join().unwrap().unwrap_err();
    assert!(pirn::thread::is_interrupt(&error), "{error}");
}

#[watched]
fn a_caller_of_a_full_queue_gives_up_when_its_time_is_over() {
    let folder = TempDir::new("full");
    let path = folder.join("socket");
    let (_listener, _first) = full_listener(&path);
    on_virtual(move || {
        let error = unix_connect(&path, 0, Some(Duration::from_millis(30))).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}
