//! Thousands of threads that wait for one descriptor: the cost per event does not grow with their
//! number.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::memory::threads_of;
use crate::common::{sys, watched};
use pirn::thread::{self, JoinHandle};

/// With this many threads, a walk along all of them per event takes minutes.
const CROWD: usize = 40_000;

/// Spawns threads that all call `wait`, and waits until they have begun.
///
/// Not in a scope: if a spawn fails, the test is to fail, and a scope would wait for ever for the
/// threads that wait.
fn crowd(wait: impl Fn() + Clone + Send + 'static) -> Vec<JoinHandle<()>> {
    let size = threads_of(CROWD);
    let arrived = Arc::new(AtomicUsize::new(0));
    let spawn = |_| {
        let (arrived, wait) = (arrived.clone(), wait.clone());
        thread::spawn(move || {
            arrived.fetch_add(1, SeqCst);
            wait();
        })
    };
    let threads = (0..size).map(spawn).collect();
    while arrived.load(SeqCst) < size {
        thread::yield_now();
    }
    threads
}

fn join(threads: Vec<JoinHandle<()>>) {
    for thread in threads {
        thread.join().unwrap();
    }
}

#[watched]
fn many_readers_of_one_pipe() {
    let (reader, mut writer) = io::pipe().unwrap();
    let reader = Arc::new(reader);
    let readers = crowd(move || assert_eq!((&*reader).read(&mut [0]).unwrap(), 1));
    for _ in 0..readers.len() {
        writer.write_all(b"x").unwrap();
    }
    join(readers);
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
    let writer = Arc::new(writer);
    let writers = crowd(move || (&*writer).write_all(b"x").unwrap());
    let mut bytes = vec![0; full + writers.len()];
    reader.read_exact(&mut bytes).unwrap();
    let written = bytes.iter().filter(|byte| **byte == b'x').count();
    assert_eq!(written, writers.len());
    join(writers);
}

#[watched]
fn many_acceptors_of_one_listener() {
    const CLIENTS: usize = 100;
    let listener = Arc::new(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let address = listener.local_addr().unwrap();
    let accepted = Arc::new(AtomicUsize::new(0));
    let acceptors = {
        let (listener, accepted) = (listener.clone(), accepted.clone());
        crowd(move || {
            accepted.fetch_add(usize::from(listener.accept().is_ok()), SeqCst);
        })
    };
    for _ in 0..CLIENTS {
        let mut client = TcpStream::connect(address).unwrap();
        // Returns once the connection has been accepted and dropped.
        assert_eq!(client.read(&mut [0]).unwrap(), 0);
    }
    // SAFETY: no pointers. Threads that wait for a connection get an error.
    unsafe { libc::shutdown(listener.as_raw_fd(), libc::SHUT_RDWR) };
    join(acceptors);
    assert_eq!(accepted.load(SeqCst), CLIENTS);
}
