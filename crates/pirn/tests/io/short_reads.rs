//! Reads of streams that give less than was asked for, and what the next read finds.
//!
//! With one carrier, the runtime fetches no events while a thread runs. So all that one thread does
//! in a row reaches another one as a single event.

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::net::UnixStream;
use std::ptr;
use std::time::Duration;

use crate::common::{child, on_virtual, sys, watched};
use libc::{c_int, iovec};
use pirn::thread;

/// Runs `body` on a virtual thread of a child process with one carrier, which is not preempted.
fn alone(body: impl FnOnce() + Send + 'static) {
    let one = [
        ("PIRN_PARALLELISM", "1"),
        ("PIRN_SPARE_CARRIERS", "0"),
        ("PIRN_PREEMPT", "0"),
    ];
    child::isolated(&one, || on_virtual(body));
}

/// Returns two connected streams.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (client, listener.accept().unwrap().0)
}

/// Calls `read` on one thread, and then, when that waits, `write` on another.
fn while_waiting<T: Send>(read: impl FnOnce() -> T + Send, write: impl FnOnce() + Send) -> T {
    thread::scope(|scope| {
        let reader = scope.spawn(read);
        // The reader runs first: with one carrier, threads run in the order of their start.
        scope.spawn(write);
        reader.join().unwrap()
    })
}

/// Reads up to 100 bytes.
fn some(mut stream: &TcpStream) -> Vec<u8> {
    let mut buffer = [0; 100];
    let length = stream.read(&mut buffer).unwrap();
    buffer[..length].to_vec()
}

fn send(mut stream: &TcpStream, bytes: &[u8]) {
    stream.write_all(bytes).unwrap();
}

/// Returns two streams of which the second has waited and then read all that there was.
fn used_pair() -> (TcpStream, TcpStream) {
    let (left, right) = pair();
    for _ in 0..2 {
        let got = while_waiting(|| some(&right), || send(&left, b"abc"));
        assert_eq!(got, b"abc");
    }
    (left, right)
}

/// Returns the number of calls of `read` that this process has made.
fn reads() -> Option<u64> {
    let io = std::fs::read_to_string("/proc/self/io").ok()?;
    let calls = io.lines().find_map(|line| line.strip_prefix("syscr: "))?;
    calls.parse().ok()
}

#[watched]
fn a_short_read_is_the_last_attempt_until_there_is_an_event() {
    alone(|| {
        const TRIPS: u64 = 1000;
        let (left, right) = used_pair();
        let Some(before) = reads() else {
            return; // The kernel does not count.
        };
        // `read` rather than `recv`, which the kernel does not count.
        let read = |stream: &TcpStream| {
            let mut buffer = [0u8; 100];
            // SAFETY: the buffer is writable.
            let done = unsafe { libc::read(stream.as_raw_fd(), buffer.as_mut_ptr().cast(), 100) };
            assert_eq!(done, 3);
        };
        while_waiting(
            || {
                for _ in 0..TRIPS {
                    read(&right);
                    send(&right, b"abc");
                }
            },
            || {
                for _ in 0..TRIPS {
                    send(&left, b"abc");
                    read(&left);
                }
            },
        );
        let calls = reads().unwrap() - before;
        assert!(calls < 2 * TRIPS + TRIPS / 2, "{calls} reads");
    });
}

#[watched]
fn the_end_of_a_stream_is_found_after_a_short_read() {
    alone(|| {
        let (left, right) = used_pair();
        let got = while_waiting(
            || some(&right),
            || {
                send(&left, b"last");
                left.shutdown(Shutdown::Write).unwrap();
            },
        );
        assert_eq!(got, b"last");
        assert_eq!(some(&right), b"");
        assert_eq!(some(&right), b"");
    });
}

#[watched]
fn a_local_end_of_reading_is_found_after_a_short_read() {
    alone(|| {
        let (left, right) = used_pair();
        right.shutdown(Shutdown::Read).unwrap();
        assert_eq!(some(&right), b"");
        send(&left, b"abc");
        assert_eq!(some(&right), b"abc");
        assert_eq!(some(&right), b"");
    });
}

#[watched]
fn a_reset_is_found_after_a_short_read() {
    alone(|| {
        let (left, right) = used_pair();
        send(&right, b"unread, so that closing is a reset");
        let got = while_waiting(
            || some(&right),
            || {
                send(&left, b"last");
                drop(left);
            },
        );
        assert_eq!(got, b"last");
        let error = (&right).read(&mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset);
        assert_eq!(some(&right), b"");
    });
}

/// A read stops at urgent data.
#[watched]
fn what_follows_urgent_data_is_found_after_a_short_read() {
    alone(|| {
        let (left, right) = used_pair();
        let send_with = |bytes: &[u8], flags| {
            // SAFETY: the buffer is readable.
            let sent = unsafe {
                let buffer = bytes.as_ptr().cast();
                libc::send(left.as_raw_fd(), buffer, bytes.len(), flags)
            };
            assert_eq!(sent, bytes.len() as isize);
        };
        let got = while_waiting(
            || some(&right),
            || {
                send_with(b"before", libc::MSG_MORE);
                send_with(b"!", libc::MSG_OOB);
                send_with(b"after", 0);
            },
        );
        assert_eq!(got, b"before");
        assert_eq!(some(&right), b"after");
        let got = while_waiting(|| some(&right), || send(&left, b"later"));
        assert_eq!(got, b"later");
    });
}

#[watched]
fn a_short_peek_leaves_its_bytes_to_the_next_read() {
    alone(|| {
        let (left, right) = used_pair();
        let peek = || right.peek(&mut [0; 100]).unwrap();
        assert_eq!(while_waiting(peek, || send(&left, b"abc")), 3);
        assert_eq!(peek(), 3);
        assert_eq!(some(&right), b"abc");
    });
}

/// The runtime learns of the bytes only when the thread waits, which it must not.
#[watched]
fn a_stream_made_non_blocking_after_a_short_read_asks_the_kernel() {
    alone(|| {
        let (left, right) = used_pair();
        right.set_nonblocking(true).unwrap();
        let error = (&right).read(&mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        send(&left, b"abc");
        assert_eq!(some(&right), b"abc");
    });
}

#[watched]
fn bytes_that_are_there_are_read_although_the_thread_is_interrupted() {
    alone(|| {
        let (left, right) = used_pair();
        send(&left, b"abc");
        thread::current().interrupt();
        assert_eq!(some(&right), b"abc");
        assert!((&right).read(&mut [0; 100]).is_err());
        assert!(thread::take_interrupt());
        let got = while_waiting(|| some(&right), || send(&left, b"def"));
        assert_eq!(got, b"def");
    });
}

#[watched]
fn a_timeout_after_a_short_read_ends_the_wait() {
    alone(|| {
        let (left, right) = used_pair();
        right
            .set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        let error = (&right).read(&mut [0; 100]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        send(&left, b"abc");
        assert_eq!(some(&right), b"abc");
    });
}

#[watched]
fn several_buffers_are_read_like_one() {
    alone(|| {
        let (left, right) = used_pair();
        let read = |buffers: &mut [IoSliceMut]| (&right).read_vectored(buffers).unwrap();
        let (mut one, mut two) = ([0; 2], [0; 4]);
        for _ in 0..3 {
            let buffers = &mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
            assert_eq!(while_waiting(|| read(buffers), || send(&left, b"abc")), 3);
            assert_eq!((&one, &two[..1]), (b"ab", &b"c"[..]));
        }
        // They are full, so nothing is known about what follows.
        send(&left, b"0123456789");
        let buffers = &mut [IoSliceMut::new(&mut one), IoSliceMut::new(&mut two)];
        assert_eq!(read(buffers), 6);
        assert_eq!(some(&right), b"6789");
    });
}

/// The kernel waits for none of these.
#[watched]
fn a_read_of_nothing_does_not_wait_after_a_short_read() {
    const NOWHERE: usize = 8;
    const NOT_OF_PROGRAMS: usize = 1 << 63;
    alone(|| {
        let (_left, right) = used_pair();
        let fd = right.as_raw_fd();
        assert_eq!(sys::read(fd, &mut []).unwrap(), 0);
        // SAFETY: the kernel looks at the addresses; nothing is written.
        let read = |vectors: *const iovec, count: c_int| unsafe {
            match libc::readv(fd, vectors, count) {
                -1 => Err(sys::errno()),
                done => Ok(done),
            }
        };
        let vector = |address, iov_len| iovec {
            iov_base: ptr::without_provenance_mut(address),
            iov_len,
        };
        let empty = [vector(NOWHERE, 0), vector(NOWHERE, 0)];
        assert_eq!(read(ptr::null(), 0), Ok(0));
        assert_eq!(read(empty.as_ptr(), 2), Ok(0));
        assert_eq!(read(empty.as_ptr(), -1), Err(libc::EINVAL));
        assert_eq!(read(empty.as_ptr(), 1025), Err(libc::EINVAL));
        assert_eq!(read(&vector(NOWHERE, usize::MAX), 1), Err(libc::EINVAL));
        assert_eq!(read(&vector(NOT_OF_PROGRAMS, 1), 1), Err(libc::EFAULT));
        assert_eq!(read(ptr::without_provenance(NOWHERE), 1), Err(libc::EFAULT));
        // SAFETY: the kernel looks at the addresses; nothing is written.
        let done = unsafe { libc::read(fd, ptr::without_provenance_mut(NOT_OF_PROGRAMS), 1) };
        assert_eq!((done, sys::errno()), (-1, libc::EFAULT));
    });
}

/// epoll says nothing of fewer bytes than the mark.
#[watched]
fn fewer_bytes_than_the_low_water_mark_are_read_after_a_short_read() {
    alone(|| {
        let (left, right) = used_pair();
        let mark: c_int = 10;
        sys::set_socket_option(&right, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &mark);
        send(&left, b"abc");
        (&right).read_exact(&mut [0; 2]).unwrap();
        // A connection inherits its listener's mark.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        sys::set_socket_option(&listener, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &3);
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let accepted = listener.accept().unwrap().0;
        let got = while_waiting(|| some(&accepted), || send(&client, b"abc"));
        assert_eq!(got, b"abc");
        send(&client, b"ab");
        (&accepted).read_exact(&mut [0; 2]).unwrap();
    });
}

/// Receives five bytes, which are sent in two pieces, with a wait between them.
fn in_two_pieces(left: &UnixStream, right: &UnixStream, flags: c_int) {
    let (fd, mut buffer) = (right.as_raw_fd(), [0_u8; 5]);
    // SAFETY: the buffer has this room.
    let receive = || unsafe { libc::recv(fd, buffer.as_mut_ptr().cast(), 5, flags) };
    let got = while_waiting(receive, || {
        (&*left).write_all(b"abc").unwrap();
        thread::sleep(Duration::from_millis(1));
        (&*left).write_all(b"de").unwrap();
    });
    assert_eq!((got, &buffer), (5, b"abcde"));
}

#[watched]
fn a_low_water_mark_of_before_the_first_thread_counts() {
    child::isolated(&[("PIRN_PARALLELISM", "1")], || {
        let (left, right) = UnixStream::pair().unwrap();
        let mark: c_int = 5;
        sys::set_socket_option(&right, libc::SOL_SOCKET, libc::SO_RCVLOWAT, &mark);
        on_virtual(move || {
            in_two_pieces(&left, &right.try_clone().unwrap(), 0);
            in_two_pieces(&left, &right, 0);
        });
    });
}

/// There is no room for the credentials, as there would be none for descriptors.
#[watched]
fn credentials_do_not_end_a_receive() {
    alone(|| {
        let (left, right) = UnixStream::pair().unwrap();
        let on: c_int = 1;
        sys::set_socket_option(&right, libc::SOL_SOCKET, libc::SO_PASSCRED, &on);
        in_two_pieces(&left, &right, libc::MSG_WAITALL);
    });
}

/// A read of a Unix stream stops after bytes that came with a descriptor.
#[watched]
fn a_unix_stream_is_read_on_after_a_short_read() {
    alone(|| {
        let (mut left, mut right) = UnixStream::pair().unwrap();
        let mut buffer = [0; 100];
        for _ in 0..2 {
            let got = while_waiting(
                || right.read(&mut buffer).unwrap(),
                || left.write_all(b"abc").unwrap(),
            );
            assert_eq!(got, 3);
        }
        let got = while_waiting(
            || right.read(&mut buffer).unwrap(),
            || {
                send_descriptor(&left, b"before");
                left.write_all(b"after").unwrap();
            },
        );
        assert_eq!(&buffer[..got], b"before");
        let got = right.read(&mut buffer).unwrap();
        assert_eq!(&buffer[..got], b"after");
    });
}

/// Sends some bytes together with a descriptor.
fn send_descriptor(stream: &UnixStream, bytes: &[u8]) {
    let mut control = [0u64; 4];
    let mut bytes = IoSlice::new(bytes);
    // SAFETY: all zeros is a message; the control data fit into their room.
    unsafe {
        let mut message: libc::msghdr = std::mem::zeroed();
        message.msg_iov = (&raw mut bytes).cast();
        message.msg_iovlen = 1;
        message.msg_control = control.as_mut_ptr().cast();
        message.msg_controllen = libc::CMSG_SPACE(4) as usize;
        let header = libc::CMSG_FIRSTHDR(&raw const message);
        (*header).cmsg_level = libc::SOL_SOCKET;
        (*header).cmsg_type = libc::SCM_RIGHTS;
        (*header).cmsg_len = libc::CMSG_LEN(4) as usize;
        libc::CMSG_DATA(header)
            .cast::<i32>()
            .write(stream.as_raw_fd());
        let sent = libc::sendmsg(stream.as_raw_fd(), &raw const message, 0);
        assert_eq!(sent, bytes.len() as isize);
    }
}

/// The number of the old stream means another one, which has bytes.
#[watched]
fn the_next_stream_of_a_number_knows_nothing_of_the_last_one() {
    alone(|| {
        let (_left, right) = used_pair();
        let number = right.as_raw_fd();
        let (mut other, next) = pair();
        next.set_nonblocking(true).unwrap();
        other.write_all(b"abc").unwrap();
        drop(right);
        // SAFETY: the number is free.
        let next = unsafe {
            assert_eq!(libc::dup2(next.as_raw_fd(), number), number);
            TcpStream::from_raw_fd(number)
        };
        assert_eq!(some(&next), b"abc");
    });
}
