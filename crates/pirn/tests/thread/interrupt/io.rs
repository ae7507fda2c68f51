//! Interruption of input and output: it fails where it would wait, and no byte is lost.

use std::fs;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::net::{UnixDatagram, UnixListener, UnixStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;
use std::{ptr, slice};

use super::fixture::{
    AN_HOUR, assert_canceled, fails, interrupted, interrupted_before, interrupted_meanwhile,
};
use crate::common::{TempDir, on_virtual, pattern, pipes, sys, until_it_waits, watched};
use pirn::thread;

fn listen() -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

fn tcp_pair() -> (TcpStream, TcpStream) {
    let (listener, address) = listen();
    let client = TcpStream::connect(address).unwrap();
    (client, listener.accept().unwrap().0)
}

#[watched]
fn reads_of_sockets_fail() {
    let (mut left, mut right) = tcp_pair();
    fails(|| (&left).read(&mut [0]));
    fails(|| left.peek(&mut [0]));
    fails(|| (&left).read_exact(&mut [0; 2]));
    let udp = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    fails(|| udp.recv(&mut [0]));
    fails(|| udp.recv_from(&mut [0]));
    let (unix, _other) = UnixStream::pair().unwrap();
    fails(|| (&unix).read(&mut [0]));
    let (datagrams, _other) = UnixDatagram::pair().unwrap();
    fails(|| datagrams.recv(&mut [0]));
    // With the flag cleared, it works again.
    on_virtual(move || {
        thread::current().interrupt();
        assert_canceled(&left.read(&mut [0]).unwrap_err());
        assert!(thread::take_interrupt());
        right.write_all(b"x").unwrap();
        assert_eq!(left.read(&mut [0]).unwrap(), 1);
    });
}

#[watched]
fn a_read_with_a_timeout_fails() {
    let (left, _right) = tcp_pair();
    left.set_read_timeout(Some(AN_HOUR)).unwrap();
    fails(|| (&left).read(&mut [0]));
}

#[watched]
fn accepting_fails() {
    let (listener, address) = listen();
    fails(|| listener.accept());
    let folder = TempDir::new("interrupt");
    let unix = UnixListener::bind(folder.join("socket")).unwrap();
    fails(|| unix.accept());
    // The listeners still work.
    let client = TcpStream::connect(address).unwrap();
    let (_, peer) = on_virtual(move || listener.accept()).unwrap();
    assert_eq!(client.local_addr().unwrap(), peer);
}

#[watched]
fn connecting_fails() {
    let (listener, address) = listen();
    // SAFETY: changes the length of the listener's queue.
    sys::check(unsafe { libc::listen(listener.as_raw_fd(), 0) }).unwrap();
    let soon = Duration::from_millis(100);
    let mut queued = Vec::new();
    while let Ok(stream) = TcpStream::connect_timeout(&address, soon) {
        queued.push(stream);
    }
    fails(|| TcpStream::connect(address));
    fails(|| TcpStream::connect_timeout(&address, AN_HOUR));
}

#[watched]
fn pipes_fail() {
    let (reader, _writer) = io::pipe().unwrap();
    fails(|| (&reader).read(&mut [0]));
    fails(|| (&reader).read_to_end(&mut Vec::new()));
    let (_reader, writer) = io::pipe().unwrap();
    fails(|| (&writer).write_all(&pattern(1 << 20)));
}

/// Writes `chunk`s until a write fails. Asserts that an interrupt caused it. Returns the number of
/// bytes written.
fn write_on(mut sink: impl Write, chunk: &[u8]) -> usize {
    let mut written = 0;
    loop {
        match sink.write(&chunk[written % chunk.len()..]) {
            Ok(count) => written += count,
            Err(error) => {
                assert_canceled(&error);
                return written;
            }
        }
    }
}

/// Asserts that the reader gets exactly the bytes that the writer was told of.
fn written_bytes_arrive(sink: impl Write + Send, mut source: impl Read, length: usize) {
    let chunk = pattern(length);
    let written = interrupted_meanwhile(|| write_on(sink, &chunk)); // drops the sink
    let mut read = Vec::new();
    source.read_to_end(&mut read).unwrap();
    assert_eq!(read.len(), written);
    assert!(written > 0);
    assert!(read.iter().zip(chunk.iter().cycle()).all(|(a, b)| a == b));
}

#[watched]
fn bytes_that_are_written_arrive() {
    for length in [1000, 1 << 25] {
        let (left, right) = tcp_pair();
        written_bytes_arrive(left, right, length);
        let (left, right) = UnixStream::pair().unwrap();
        written_bytes_arrive(left, right, length);
        let (reader, writer) = io::pipe().unwrap();
        written_bytes_arrive(writer, reader, length);
    }
}

#[watched]
fn a_read_in_pieces_loses_nothing() {
    let (left, mut right) = tcp_pair();
    let mut buffer = [0; 4];
    right.write_all(b"ab").unwrap();
    let mut first = buffer;
    let result = interrupted_meanwhile(|| (&left).read_exact(&mut first));
    assert_canceled(&result.unwrap_err());
    assert_eq!(&first[..2], b"ab", "what was read before is in its place");
    right.write_all(b"cdef").unwrap();
    // A call that need not wait succeeds, interrupted or not.
    let result = interrupted_before(|| (&left).read_exact(&mut buffer));
    result.unwrap();
    assert_eq!(&buffer, b"cdef");
}

#[watched]
fn a_receive_that_waits_for_all_returns_what_it_has() {
    let (left, mut right) = tcp_pair();
    right.write_all(b"ab").unwrap();
    let mut buffer = [0u8; 4];
    let fd = left.as_raw_fd();
    let count = interrupted_meanwhile(|| {
        // SAFETY: the buffer is valid for its length.
        unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), 4, libc::MSG_WAITALL) }
    });
    assert_eq!((count, &buffer[..2]), (2, &b"ab"[..]));
}

#[watched]
fn what_need_not_wait_is_done() {
    let folder = TempDir::new("interrupt");
    let path = folder.join("file");
    let contents = pattern(100_000);
    interrupted_before(|| {
        fs::write(&path, &contents).unwrap();
        assert_eq!(fs::read(&path).unwrap(), contents);
        fs::File::open(&path).unwrap().sync_all().unwrap();
        let (mut reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        assert_eq!(reader.read(&mut [0]).unwrap(), 1);
        let (listener, address) = listen();
        let _client = TcpStream::connect(address).unwrap();
        listener.accept().unwrap();
    });
}

#[watched]
fn copies_fail() {
    let folder = TempDir::new("interrupt");
    let path = folder.join("file");
    let contents = pattern(1 << 24);
    fs::write(&path, &contents).unwrap();
    for early in [false, true] {
        // From a file to a socket: the bytes that arrive are the file's beginning.
        let (left, mut right) = UnixStream::pair().unwrap();
        let mut file = fs::File::open(&path).unwrap();
        let copy = move || io::copy(&mut file, &mut { left });
        let result = match early {
            true => interrupted_before(copy),
            false => interrupted_meanwhile(copy),
        };
        assert_canceled(&result.unwrap_err());
        let mut read = Vec::new();
        right.read_to_end(&mut read).unwrap();
        assert!(contents.starts_with(&read));
    }
    // From one pipe to another, inside the kernel.
    let (from, to) = (io::pipe().unwrap(), io::pipe().unwrap());
    fails(|| io::copy(&mut &from.0, &mut &to.1));
    let (from, to) = (tcp_pair(), tcp_pair());
    fails(|| io::copy(&mut &from.0, &mut &to.0));
    let file = || fs::File::create(folder.join("copy")).unwrap();
    fails(|| io::copy(&mut &from.0, &mut file()));
}

#[watched]
fn poll_and_select_fail() {
    let both = pipes(2);
    let entries = || both.iter().map(|p| sys::entry(p.0.as_fd(), libc::POLLIN));
    fails(|| sys::poll(&mut entries().collect::<Vec<_>>(), -1));
    fails(|| sys::poll(&mut entries().collect::<Vec<_>>(), 1_000_000));
    fails(|| sys::poll(&mut [], -1));
    let fd = both[0].0.as_raw_fd();
    fails(|| {
        // SAFETY: a set of our own with one descriptor; the others and the timeout are null.
        unsafe {
            let mut set: libc::fd_set = std::mem::zeroed();
            libc::FD_SET(fd, &mut set);
            let null = ptr::null_mut();
            sys::check(libc::select(fd + 1, &mut set, null, null, ptr::null_mut()))
        }
    });
    // Readiness is reported, interrupted or not.
    (&both[1].1).write_all(b"x").unwrap();
    let ready = interrupted_before(|| sys::poll(&mut entries().collect::<Vec<_>>(), -1));
    assert_eq!(ready.unwrap(), 1);
}

fn epoll_of(fd: &impl AsRawFd) -> OwnedFd {
    // SAFETY: no pointers.
    let epoll = sys::own(unsafe { libc::epoll_create1(0) }).unwrap();
    let mut event = libc::epoll_event {
        events: (libc::EPOLLIN | libc::EPOLLET) as u32,
        u64: 7,
    };
    let (set, add) = (epoll.as_raw_fd(), libc::EPOLL_CTL_ADD);
    // SAFETY: a valid event.
    sys::check(unsafe { libc::epoll_ctl(set, add, fd.as_raw_fd(), &mut event) }).unwrap();
    epoll
}

fn epoll_wait(epoll: &OwnedFd, timeout_ms: i32) -> io::Result<u64> {
    let mut event = libc::epoll_event { events: 0, u64: 0 };
    // SAFETY: room for one event.
    let count = unsafe { libc::epoll_wait(epoll.as_raw_fd(), &mut event, 1, timeout_ms) };
    sys::check(count).map(|count| event.u64 * count as u64)
}

#[watched]
fn an_event_loop_is_told_once() {
    let (reader, mut writer) = io::pipe().unwrap();
    let epoll = epoll_of(&reader);
    for timeout in [-1, 1_000_000] {
        for result in interrupted(|| epoll_wait(&epoll, timeout)) {
            assert_eq!(result.unwrap_err().kind(), io::ErrorKind::Interrupted);
        }
    }
    let calls = AtomicUsize::new(0);
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            let next = || {
                calls.fetch_add(1, SeqCst);
                epoll_wait(&epoll, -1)
            };
            let error = next().unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::Interrupted);
            assert_eq!(next().unwrap(), 7, "later waits work");
            assert!(thread::is_interrupted());
        });
        until_it_waits(waiter.thread());
        waiter.thread().interrupt();
        while calls.load(SeqCst) < 2 {
            thread::yield_now();
        }
        until_it_waits(waiter.thread());
        writer.write_all(b"x").unwrap();
        waiter.join().unwrap();
    });
    assert_eq!(calls.into_inner(), 2);
}

/// Returns a child that lives until its standard input ends.
fn cat() -> Child {
    let mut command = Command::new("cat");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().unwrap()
}

#[watched]
fn waiting_for_a_child_fails() {
    for early in [false, true] {
        let mut child = cat();
        let stdin = child.stdin.take();
        let wait = || child.wait();
        let result = match early {
            true => interrupted_before(wait),
            false => interrupted_meanwhile(wait),
        };
        assert_canceled(&result.unwrap_err());
        // It can still be waited for.
        drop(stdin);
        assert!(on_virtual(move || child.wait()).unwrap().success());
        let mut child = cat();
        fails(|| sys::waitpid(child.id() as i32));
        drop(child.stdin.take());
        assert!(child.wait().unwrap().success());
    }
}

#[watched]
fn an_interrupt_wakes_but_one_of_many() {
    let (left, mut right) = tcp_pair();
    let left = &left;
    thread::scope(|scope| {
        let read = || {
            let mut byte = 0;
            ({ left })
                .read_exact(slice::from_mut(&mut byte))
                .map(|()| byte)
        };
        let readers: Vec<_> = (0..20).map(|_| scope.spawn(read)).collect();
        readers
            .iter()
            .for_each(|reader| until_it_waits(reader.thread()));
        // The first in the queue, one in the middle, the last.
        for i in [0, 10, 19] {
            readers[i].thread().interrupt();
        }
        right.write_all(&[9; 17]).unwrap();
        for (i, reader) in readers.into_iter().enumerate() {
            match reader.join().unwrap() {
                Ok(byte) => assert_eq!((byte, i % 10 != 0 && i != 19), (9, true)),
                Err(error) => assert_canceled(&error),
            }
        }
    });
}
