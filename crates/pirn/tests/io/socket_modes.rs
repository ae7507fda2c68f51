//! The corners of sockets: timeouts, non-blocking mode, visible flags, `dup`, descriptor reuse.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::{AsRawFd, IntoRawFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::common::{
    block_then, crowd, most_carriers, on_virtual, pattern, sys, virtual_crowd, watched,
};
use pirn::thread;

/// The timeout that is set, and the minimum that must pass: the kernel counts in whole ticks, of
/// which the first has already begun.
const SET: Duration = Duration::from_millis(50);
const LEAST: Duration = Duration::from_millis(35);

fn pair() -> (UnixStream, UnixStream) {
    UnixStream::pair().unwrap()
}

#[watched]
fn read_timeouts_fire() {
    crowd(|_| {
        let (mut left, mut right) = pair();
        right.set_read_timeout(Some(SET)).unwrap();
        let begin = Instant::now();
        let error = right.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= LEAST);
        // The stream still works.
        left.write_all(b"x").unwrap();
        assert_eq!(right.read(&mut [0]).unwrap(), 1);
    });
}

#[watched]
fn a_read_timeout_of_a_tcp_stream_also_ends_peek() {
    on_virtual(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let stream = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        stream.set_read_timeout(Some(SET)).unwrap();
        assert!(stream.read_timeout().unwrap() >= Some(SET));
        let begin = Instant::now();
        let error = stream.peek(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= LEAST);
    });
}

#[watched]
fn write_timeouts_fire() {
    crowd(|_| {
        let (mut left, mut right) = pair();
        left.set_write_timeout(Some(SET)).unwrap();
        let chunk = pattern(1 << 16);
        let begin = Instant::now();
        let error = loop {
            if let Err(error) = left.write(&chunk) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= LEAST);
        drop(left);
        assert!(right.read_to_end(&mut Vec::new()).unwrap() > 0);
    });
}

#[watched]
fn data_in_time_beats_the_timeout() {
    let pairs: Vec<_> = (0..20 * most_carriers()).map(|_| pair()).collect();
    block_then(
        pairs.len(),
        |i| {
            let mut right = &pairs[i].1;
            right
                .set_read_timeout(Some(Duration::from_secs(3600)))
                .unwrap();
            assert_eq!(right.read(&mut [0]).unwrap(), 1);
        },
        || {
            for (left, _) in &pairs {
                let mut left = left;
                left.write_all(b"x").unwrap();
            }
        },
    );
}

#[watched]
fn timeouts_can_be_changed_and_taken_back() {
    on_virtual(|| {
        let (mut left, mut right) = pair();
        right.set_read_timeout(Some(SET)).unwrap();
        assert!(right.read(&mut [0]).is_err());
        right.set_read_timeout(None).unwrap();
        let reader = thread::spawn(move || right.read(&mut [0]).unwrap());
        // Longer than the timeout that is no longer set.
        thread::sleep(2 * SET);
        left.write_all(b"x").unwrap();
        assert_eq!(reader.join().unwrap(), 1);
    });
}

#[watched]
fn an_accept_timeout_fires() {
    on_virtual(|| {
        // SO_RCVTIMEO holds for `accept` too, though `std` has no name for it there.
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let time = libc::timeval {
            tv_sec: 0,
            tv_usec: 50_000,
        };
        sys::set_socket_option(&listener, libc::SOL_SOCKET, libc::SO_RCVTIMEO, &time);
        let begin = Instant::now();
        let error = listener.accept().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        assert!(begin.elapsed() >= LEAST);
    });
}

#[watched]
fn non_blocking_sockets_do_not_block() {
    virtual_crowd(|_| {
        let (mut left, mut right) = pair();
        right.set_nonblocking(true).unwrap();
        let error = right.read(&mut [0]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        left.write_all(b"x").unwrap();
        assert_eq!(right.read(&mut [0]).unwrap(), 1);
        left.set_nonblocking(true).unwrap();
        let chunk = pattern(1 << 16);
        let error = loop {
            if let Err(error) = left.write(&chunk) {
                break error;
            }
        };
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[watched]
fn a_non_blocking_listener_does_not_block() {
    on_virtual(|| {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let error = listener.accept().unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
        let _client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (accepted, _) = listener.accept().unwrap();
        // On Linux the accepted stream does not inherit the mode.
        assert_eq!(sys::status_flags(&accepted) & libc::O_NONBLOCK, 0);
    });
}

#[watched]
fn blocking_mode_comes_back() {
    on_virtual(|| {
        let (mut left, mut right) = pair();
        right.set_nonblocking(true).unwrap();
        assert!(right.read(&mut [0]).is_err());
        right.set_nonblocking(false).unwrap();
        let reader = thread::spawn(move || right.read(&mut [0]).unwrap());
        thread::yield_now();
        left.write_all(b"x").unwrap();
        assert_eq!(reader.join().unwrap(), 1);
    });
}

#[watched]
fn the_flags_of_a_descriptor_stay_as_they_were() {
    let (left, right) = pair();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let before = [
        sys::status_flags(&left),
        sys::status_flags(&right),
        sys::status_flags(&listener),
    ];
    let look = || {
        let now = [
            sys::status_flags(&left),
            sys::status_flags(&right),
            sys::status_flags(&listener),
        ];
        assert_eq!(now, before);
    };
    block_then(
        2,
        |i| match i {
            0 => assert_eq!((&right).read(&mut [0]).unwrap(), 1),
            _ => drop(listener.accept().unwrap()),
        },
        || {
            look(); // while the others are parked, or about to be
            let client = TcpStream::connect(address).unwrap();
            assert_eq!(sys::status_flags(&client) & libc::O_NONBLOCK, 0);
            (&left).write_all(b"x").unwrap();
        },
    );
    look();
}

#[watched]
fn msg_dontwait_does_not_block() {
    on_virtual(|| {
        let (_left, right) = pair();
        let mut byte = 0_u8;
        // SAFETY: `byte` is valid for one byte.
        let count = unsafe {
            libc::recv(
                right.as_raw_fd(),
                (&raw mut byte).cast(),
                1,
                libc::MSG_DONTWAIT,
            )
        };
        let error = sys::check(count as i64).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::WouldBlock);
    });
}

#[watched]
fn msg_waitall_waits_for_all() {
    on_virtual(|| {
        let (mut left, right) = pair();
        let reader = thread::spawn(move || {
            let mut buffer = [0_u8; 8];
            // SAFETY: the buffer is valid for its length.
            let count = unsafe {
                libc::recv(
                    right.as_raw_fd(),
                    buffer.as_mut_ptr().cast(),
                    buffer.len(),
                    libc::MSG_WAITALL,
                )
            };
            assert_eq!(count, 8);
            buffer
        });
        for byte in 0..8 {
            left.write_all(&[byte]).unwrap();
            thread::sleep(Duration::from_millis(1));
        }
        assert_eq!(reader.join().unwrap(), [0, 1, 2, 3, 4, 5, 6, 7]);
    });
}

#[watched]
fn clones_read_and_write_at_once() {
    let (left, right) = pair();
    let data = pattern(4 << 20);
    thread::scope(|scope| {
        let (mut reading, mut writing) = (left.try_clone().unwrap(), left);
        let (mut echo_reading, mut echo_writing) = (right.try_clone().unwrap(), right);
        let data = &data;
        scope.spawn(move || {
            writing.write_all(data).unwrap();
            writing.shutdown(Shutdown::Write).unwrap();
        });
        scope.spawn(move || {
            std::io::copy(&mut echo_reading, &mut echo_writing).unwrap();
            echo_writing.shutdown(Shutdown::Write).unwrap();
        });
        scope.spawn(move || {
            let mut received = Vec::new();
            reading.read_to_end(&mut received).unwrap();
            assert!(&received == data, "damaged");
        });
    });
}

#[watched]
fn a_clone_outlives_the_original() {
    virtual_crowd(|_| {
        let (left, right) = pair();
        // Both ends have been parked on before, so the runtime knows their descriptors.
        thread::scope(|scope| {
            scope.spawn(|| (&right).read_exact(&mut [0]).unwrap());
            scope.spawn(|| (&left).write_all(b"x").unwrap());
        });
        let mut clone = right.try_clone().unwrap();
        drop(right);
        // Very likely the number just closed, for another file.
        let (mut other_left, mut other_right) = pair();
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(clone.read(&mut [0; 8]).unwrap(), 4));
            scope.spawn(|| assert_eq!(other_right.read(&mut [0; 8]).unwrap(), 5));
            scope.spawn(|| (&left).write_all(b"weft").unwrap());
            scope.spawn(|| other_left.write_all(b"other").unwrap());
        });
    });
}

#[watched]
fn a_reused_descriptor_has_nothing_of_its_former_life() {
    virtual_crowd(|_| {
        for round in 0..20_u8 {
            let (mut left, mut right) = pair();
            let reader = thread::spawn(move || {
                let mut byte = [0];
                // Readiness left over from the last round would end this early or never.
                let count = right.read(&mut byte).unwrap();
                (count, byte[0])
            });
            thread::yield_now();
            // Every second time the descriptor is closed with a byte left in it.
            let rest = if round % 2 == 0 { 1 } else { 2 };
            left.write_all(&[round; 2][..rest]).unwrap();
            assert_eq!(reader.join().unwrap(), (1, round));
        }
    });
}

#[watched]
fn a_reused_descriptor_may_be_of_another_kind() {
    on_virtual(|| {
        for _ in 0..50 {
            let (mut left, mut right) = pair();
            let reader = thread::spawn(move || right.read(&mut [0]).unwrap());
            thread::yield_now();
            left.write_all(b"x").unwrap();
            assert_eq!(reader.join().unwrap(), 1);
            drop(left);
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            let address = socket.local_addr().unwrap();
            let receiver = thread::spawn(move || socket.recv(&mut [0; 8]).unwrap());
            thread::yield_now();
            let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            sender.send_to(b"abc", address).unwrap();
            assert_eq!(receiver.join().unwrap(), 3);
        }
    });
}

#[watched]
fn dup2_puts_another_socket_under_the_number() {
    virtual_crowd(|_| {
        let (mut old_left, mut old_right) = pair();
        let (mut new_left, new_right) = pair();
        let old_reader = thread::scope(|scope| {
            let reader = scope.spawn(|| old_right.read(&mut [0]).unwrap());
            old_left.write_all(b"x").unwrap();
            reader.join().unwrap()
        });
        assert_eq!(old_reader, 1);
        let number = new_right.into_raw_fd();
        sys::dup2(number, old_right.as_raw_fd()).unwrap();
        sys::close(number).unwrap();
        // The last descriptor of the old end is gone.
        let error = old_left.write(b"x").unwrap_err();
        assert_eq!(error.kind(), ErrorKind::BrokenPipe);
        thread::scope(|scope| {
            let reader = scope.spawn(|| {
                let mut buffer = [0; 3];
                old_right.read_exact(&mut buffer).unwrap();
                buffer
            });
            thread::yield_now();
            new_left.write_all(b"new").unwrap();
            assert_eq!(&reader.join().unwrap(), b"new");
        });
    });
}
