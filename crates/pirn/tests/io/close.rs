//! Closing a descriptor wakes the threads that are parked on it with `EBADF`. The kernel does not
//! do this for platform threads, so this file has no counterpart in `std`.
//!
//! The tests close bare numbers, so each has its own process, and the numbers are high: a thread
//! that makes its call only after the close must find the number unused.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use crate::common::{block_then, many, on_virtual, sys, watched};
use pirn::thread;

/// Returns the file's descriptor, with a high number. The lowest that is free goes to the next file
/// that is opened, and now and then the runtime opens one: the kernel's state of a carrier, say.
fn high(file: impl AsRawFd) -> RawFd {
    const NUMBER: RawFd = 700;
    sys::dup2(file.as_raw_fd(), NUMBER).unwrap();
    NUMBER
}

/// Parks many virtual threads in `call`, closes `fd`, and expects `EBADF` from all of them.
#[track_caller]
fn expect_bad_descriptor(fd: RawFd, call: impl Fn() -> io::Result<usize> + Sync) {
    block_then(
        many(),
        |_| assert_eq!(call().unwrap_err().raw_os_error(), Some(libc::EBADF)),
        || sys::close(fd).unwrap(),
    );
}

#[watched(alone)]
fn close_wakes_readers_of_a_pipe() {
    let (reader, _writer) = io::pipe().unwrap();
    let fd = high(reader);
    expect_bad_descriptor(fd, || sys::read(fd, &mut [0]));
}

#[watched(alone)]
fn close_wakes_writers_of_a_pipe() {
    let (_reader, writer) = io::pipe().unwrap();
    sys::set_nonblocking(&writer, true);
    while sys::write(writer.as_raw_fd(), &[0; 4096]).is_ok() {}
    sys::set_nonblocking(&writer, false);
    let fd = high(writer);
    expect_bad_descriptor(fd, || sys::write(fd, &[0; 4096]));
}

#[watched(alone)]
fn close_wakes_readers_of_a_socket() {
    let (left, _right) = UnixStream::pair().unwrap();
    let fd = high(left);
    expect_bad_descriptor(fd, || sys::read(fd, &mut [0]));
}

#[watched(alone)]
fn close_wakes_receivers_of_a_datagram_socket() {
    let fd = high(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    expect_bad_descriptor(fd, || {
        let mut byte = [0_u8];
        // SAFETY: the buffer is valid for one byte.
        let count = unsafe { libc::recv(fd, byte.as_mut_ptr().cast(), 1, 0) };
        sys::check(count as i64).map(|count| count as usize)
    });
}

#[watched(alone)]
fn close_wakes_acceptors() {
    let fd = high(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    expect_bad_descriptor(fd, || {
        // SAFETY: `accept` may be called without room for the address.
        let accepted = unsafe { libc::accept(fd, std::ptr::null_mut(), std::ptr::null_mut()) };
        sys::own(accepted).map(|_| 0)
    });
}

#[watched(alone)]
fn dup2_over_a_descriptor_wakes_like_close() {
    let (old, _writer) = io::pipe().unwrap();
    let (new, _new_writer) = io::pipe().unwrap();
    sys::set_nonblocking(&new, true);
    let fd = old.as_raw_fd();
    block_then(
        many(),
        |_| {
            // Woken: EBADF. Not yet parked: the new pipe, which is empty too.
            let error = sys::read(fd, &mut [0]).unwrap_err().raw_os_error();
            assert!(
                matches!(error, Some(libc::EBADF | libc::EAGAIN)),
                "{error:?}"
            );
        },
        || sys::dup2(new.as_raw_fd(), fd).unwrap(),
    );
}

/// Each time the descriptor is registered with epoll anew, by readers who find another file there
/// in the middle of that.
#[watched(alone)]
fn dup2_again_and_again_is_seen_as_close_or_another_file() {
    let (last, _last_writer) = io::pipe().unwrap();
    let (number, _writer) = io::pipe().unwrap();
    let fd = number.as_raw_fd();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = |_| {
            scope.spawn(|| {
                while !over.load(SeqCst) {
                    // The end: of a file that was replaced, in a call that had begun before.
                    let error = sys::read(fd, &mut [0]).err().map(|e| e.raw_os_error());
                    let known = [Some(libc::EBADF), Some(libc::EAGAIN)];
                    assert!(
                        error.is_none_or(|error| known.contains(&error)),
                        "{error:?}"
                    );
                }
            })
        };
        let readers = Vec::from_iter((0..8).map(reader));
        let mut writers = Vec::new();
        for _ in 0..10_000 {
            let (reader, writer) = io::pipe().unwrap();
            sys::dup2(reader.as_raw_fd(), fd).unwrap();
            writers.truncate(1);
            writers.insert(0, writer);
        }
        over.store(true, SeqCst);
        // Those that wait for the last file, or are about to.
        sys::set_nonblocking(&last, true);
        while !readers.iter().all(|reader| reader.is_finished()) {
            sys::dup2(last.as_raw_fd(), fd).unwrap();
            thread::yield_now();
        }
    });
}

#[watched(alone)]
fn closing_a_duplicate_wakes_nobody_else() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let duplicate = listener.try_clone().unwrap();
    let address = listener.local_addr().unwrap();
    block_then(
        many(),
        |_| drop(listener.accept().unwrap()),
        || {
            drop(duplicate);
            thread::yield_now();
            for _ in 0..many() {
                TcpStream::connect(address).unwrap();
            }
        },
    );
}

#[watched(alone)]
fn a_descriptor_closed_before_is_bad_at_once() {
    on_virtual(|| {
        let (reader, _writer) = io::pipe().unwrap();
        let fd = high(reader);
        sys::close(fd).unwrap();
        let bad = Some(libc::EBADF);
        assert_eq!(sys::read(fd, &mut [0]).unwrap_err().raw_os_error(), bad);
        assert_eq!(sys::close(fd).unwrap_err().raw_os_error(), bad);
    });
}
