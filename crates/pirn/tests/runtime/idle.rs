//! If all threads are parked the process uses no CPU.

use std::io::{self, PipeReader, PipeWriter, Read};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use crate::common::memory::threads_of;
use crate::common::{child, sys, watched};
use pirn::thread;

/// The number of waiting virtual threads.
const WAITING: usize = 10_000;

/// Longer than any test.
const AN_HOUR: Duration = Duration::from_secs(3600);

/// Things to wait for that never come.
struct Nothing {
    held: Mutex<()>,
    condition: (Mutex<()>, Condvar),
    pipes: Vec<(PipeReader, PipeWriter)>,
    listener: TcpListener,
    socket: UdpSocket,
    channel: (Sender<()>, Mutex<Receiver<()>>),
}

impl Nothing {
    fn new() -> Nothing {
        let (sender, receiver) = mpsc::channel();
        Nothing {
            held: Mutex::default(),
            condition: Default::default(),
            pipes: (0..100).map(|_| io::pipe().unwrap()).collect(),
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            channel: (sender, Mutex::new(receiver)),
        }
    }

    /// Waits in one of ten ways.
    fn wait(&self, i: usize) {
        let pipe = &self.pipes[i % self.pipes.len()].0;
        match i % 10 {
            0 => loop {
                thread::park(); // which may end for no reason
            },
            1 => thread::park_timeout(AN_HOUR),
            2 => thread::sleep(AN_HOUR),
            3 => drop(self.held.lock()),
            4 => drop(self.condition.1.wait(self.condition.0.lock().unwrap())),
            5 => drop((&*pipe).read(&mut [0])),
            6 => drop(sys::poll(&mut [sys::entry(pipe.as_fd(), libc::POLLIN)], -1)),
            7 => drop(self.listener.accept()),
            8 => drop(self.socket.recv(&mut [0])),
            // The first waits here, the others for the lock.
            _ => drop(self.channel.1.lock().unwrap().recv_timeout(AN_HOUR)),
        }
        eprintln!("thread {i} was woken");
        std::process::abort();
    }
}

/// Fills the process with waiting threads; they wait as long as it lives.
fn fill() -> MutexGuard<'static, ()> {
    let nothing: &'static Nothing = Box::leak(Box::new(Nothing::new()));
    let guard = nothing.held.lock().unwrap();
    let (here, arrived) = mpsc::channel();
    let waiting = threads_of(WAITING);
    for i in 0..waiting {
        let here = here.clone();
        thread::spawn(move || {
            here.send(()).unwrap();
            nothing.wait(i);
        });
    }
    assert_eq!(arrived.iter().take(waiting).count(), waiting);
    guard
}

/// Returns the CPU time this process uses in one second.
fn used_in_a_second() -> Duration {
    let before = pirn_testing::processor_time();
    std::thread::sleep(Duration::from_secs(1));
    pirn_testing::processor_time() - before
}

/// Asserts that the process becomes idle, and stays so for a second.
fn assert_rest() {
    const NOTHING: Duration = Duration::from_millis(50);
    // The last threads of the crowd are still on their way into their waits.
    while used_in_a_second() >= NOTHING {}
    let used = used_in_a_second();
    assert!(used < NOTHING, "{used:?} of CPU time");
}

#[watched]
fn waiting_threads_use_no_cpu() {
    child::isolated(&[], || {
        let _held = fill();
        assert_rest();
        // Nor does the end of the process wait for them.
        std::process::exit(0);
    });
}

#[watched]
fn idle_carriers_use_no_cpu() {
    child::isolated(&[("PIRN_PARALLELISM", "8")], || {
        for _ in 0..100 {
            crate::common::virtual_crowd(|_| thread::yield_now());
        }
        assert_rest();
        let _held = fill();
        assert_rest();
        std::process::exit(0);
    });
}

#[watched]
fn a_burst_after_rest_still_runs() {
    child::isolated(&[], || {
        let _held = fill();
        assert_rest();
        // Sleeping carriers are woken again, from outside and from timers.
        for _ in 0..20 {
            crate::common::virtual_crowd(|_| thread::sleep(Duration::from_millis(1)));
        }
        assert_rest();
        std::process::exit(0);
    });
}

#[watched]
fn a_sender_to_a_full_unix_socket_uses_no_cpu() {
    child::isolated(&[], || {
        let folder = crate::common::TempDir::new("full");
        let path = folder.join("receiver");
        let _receiver = UnixDatagram::bind(&path).unwrap();
        thread::spawn(move || {
            let sender = UnixDatagram::unbound().unwrap();
            // Blocks when the queue of the receiver, who never reads, is full.
            while sender.send_to(b"weft", &path).is_ok() {}
        });
        assert_rest();
    });
}
