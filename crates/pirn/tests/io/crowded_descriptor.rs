//! Thousands of threads that wait for one descriptor: the cost per event does not grow with their
//! number.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::{sys, watched};
use pirn::thread;

/// With this many threads, a walk along all of them per event takes minutes.
const CROWD: usize = 40_000;

/// Waits until `count` has reached `CROWD`.
fn all_arrived(count: &AtomicUsize) {
    while count.load(SeqCst) < CROWD {
        thread::yield_now();
    }
}

#[watched]
fn many_readers_of_one_pipe() {
    let (reader, mut writer) = io::pipe().unwrap();
    let (reader, arrived) = (&reader, &AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CROWD {
            scope.spawn(move || {
                let mut reader = reader;
                arrived.fetch_add(1, SeqCst);
                assert_eq!(reader.read(&mut [0]).unwrap(), 1);
            });
        }
        all_arrived(arrived);
        for _ in 0..CROWD {
            writer.write_all(b"x").unwrap();
        }
    });
}

#[watched]
fn many_writers_of_one_pipe() {
    let (mut reader, writer) = io::pipe().unwrap();
    sys::set_nonblocking(&writer, true);
    let mut full = 0;
    while let Ok(count) = (&writer).write(&[0; 4096]) {
        full += count;
    }
    sys::set_nonblocking(&writer, false);
    let (writer, arrived) = (&writer, &AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CROWD {
            scope.spawn(move || {
                let mut writer = writer;
                arrived.fetch_add(1, SeqCst);
                writer.write_all(b"x").unwrap();
            });
        }
        all_arrived(arrived);
        let mut bytes = vec![0; full + CROWD];
        reader.read_exact(&mut bytes).unwrap();
        assert_eq!(bytes.iter().filter(|byte| **byte == b'x').count(), CROWD);
    });
}

#[watched]
fn many_acceptors_of_one_listener() {
    const CLIENTS: usize = 100;
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    let (listener, arrived, accepted) = (&listener, &AtomicUsize::new(0), &AtomicUsize::new(0));
    thread::scope(|scope| {
        for _ in 0..CROWD {
            scope.spawn(move || {
                arrived.fetch_add(1, SeqCst);
                accepted.fetch_add(usize::from(listener.accept().is_ok()), SeqCst);
            });
        }
        all_arrived(arrived);
        for _ in 0..CLIENTS {
            let mut client = TcpStream::connect(address).unwrap();
            // Until it has been accepted, and dropped.
            assert_eq!(client.read(&mut [0]).unwrap(), 0);
        }
        // SAFETY: no pointers. What waits for a connection gets an error.
        unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
    });
    assert_eq!(accepted.load(SeqCst), CLIENTS);
}
