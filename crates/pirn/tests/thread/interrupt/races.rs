//! Races between an interrupt and the event that a thread waits for, with one, a few and many
//! carriers.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, UdpSocket};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Barrier, Condvar, Mutex};
use std::time::Duration;

use super::fixture::{AN_HOUR, assert_canceled};
use crate::common::memory::threads_of;
use crate::common::{child, sys, watched};
use pirn::thread;

const ROUNDS: usize = 10_000;

const CARRIERS: [&str; 3] = ["1", "2", "8"];

/// In each round the thread waits by `wait(round)` while one thread interrupts it and another calls
/// `end(round)`. Then `after(round, result)` runs with the flag cleared.
fn race<T>(
    wait: impl Fn(usize) -> T + Sync,
    end: impl Fn(usize, &thread::Thread) + Sync,
    after: impl Fn(usize, T) + Sync,
) {
    let (start, over) = (&Barrier::new(3), &Barrier::new(3));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| {
            for round in 0..ROUNDS {
                start.wait();
                let result = wait(round);
                over.wait();
                assert!(thread::take_interrupt(), "the interrupt was lost");
                assert!(!thread::take_interrupt());
                after(round, result);
            }
        });
        let waiting = waiter.thread();
        scope.spawn({
            let waiting = waiting.clone();
            move || {
                for _ in 0..ROUNDS {
                    start.wait();
                    waiting.interrupt();
                    over.wait();
                }
            }
        });
        for round in 0..ROUNDS {
            start.wait();
            end(round, waiting);
            over.wait();
        }
        waiter.join().unwrap();
    });
}

#[watched]
fn an_interrupt_races_an_unpark() {
    child::with_carriers(&CARRIERS, || {
        race(
            |_| thread::park_interruptible(),
            |_, waiting| waiting.unpark(),
            |_, _| (),
        );
    });
}

#[watched]
fn an_interrupt_races_a_byte() {
    child::with_carriers(&CARRIERS, || {
        let (left, right) = UnixStream::pair().unwrap();
        let read = || {
            let mut byte = [0];
            (&left).read(&mut byte).map(|count| (count, byte[0]))
        };
        race(
            |_| read(),
            |round, _| (&right).write_all(&[round as u8]).unwrap(),
            |round, result| {
                let result = result.or_else(|error| {
                    assert_canceled(&error);
                    read() // It has arrived, and is still there.
                });
                assert_eq!(result.unwrap(), (1, round as u8));
            },
        );
    });
}

#[watched]
fn an_interrupt_races_a_timeout() {
    child::with_carriers(&CARRIERS, || {
        race(
            |round| thread::sleep_interruptible(Duration::from_micros(round as u64 % 40)),
            |_, _| (),
            |_, _| (),
        );
    });
}

#[watched]
fn an_interrupt_races_a_notification() {
    child::with_carriers(&CARRIERS, || {
        let (done, changed) = (Mutex::new(0), Condvar::new());
        race(
            |round| {
                let waited = changed.wait_while(done.lock().unwrap(), |done| *done <= round);
                assert_eq!(*waited.unwrap(), round + 1);
            },
            |round, _| {
                *done.lock().unwrap() = round + 1;
                changed.notify_one();
            },
            |_, ()| (),
        );
    });
}

#[watched]
fn interrupters_race_each_other() {
    child::with_carriers(&CARRIERS, || {
        race(
            |_| thread::sleep_interruptible(AN_HOUR).unwrap_err(),
            |_, waiting| waiting.interrupt(),
            |_, _| (),
        );
    });
}

#[watched]
fn platform_threads_race_interrupts() {
    let sleeping = thread::current();
    let (start, over) = (&Barrier::new(2), &Barrier::new(2));
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                start.wait();
                sleeping.interrupt();
                over.wait();
            }
        });
        for round in 0..ROUNDS {
            start.wait();
            let _either = thread::sleep_interruptible(Duration::from_micros(round as u64 % 100));
            over.wait();
            assert!(thread::take_interrupt());
        }
    });
}

/// Things to wait for that never come.
struct Nothing {
    condition: (Mutex<()>, Condvar),
    pipe: (io::PipeReader, io::PipeWriter),
    listener: TcpListener,
    socket: UdpSocket,
}

impl Nothing {
    /// Waits in one of eight ways.
    fn wait(&self, i: usize) {
        let pipe = &self.pipe.0;
        match i % 8 {
            0 => assert!(thread::sleep_interruptible(AN_HOUR).is_err()),
            1 => thread::park(),
            2 => std::thread::sleep(AN_HOUR),
            3 => {
                let mut guard = self.condition.0.lock().unwrap();
                while !thread::is_interrupted() {
                    // The lock may have heard of the interrupt.
                    let soon = Duration::from_secs(1);
                    guard = self.condition.1.wait_timeout(guard, soon).unwrap().0;
                }
            }
            4 => assert_canceled(&{ pipe }.read(&mut [0]).unwrap_err()),
            5 => {
                let mut entries = [sys::entry(pipe.as_fd(), libc::POLLIN)];
                assert_canceled(&sys::poll(&mut entries, -1).unwrap_err());
            }
            6 => assert_canceled(&self.listener.accept().unwrap_err()),
            _ => assert_canceled(&self.socket.recv(&mut [0]).unwrap_err()),
        }
    }
}

#[watched]
fn very_many_threads_are_interrupted() {
    child::isolated(&[], || {
        let nothing: &'static Nothing = Box::leak(Box::new(Nothing {
            condition: Default::default(),
            pipe: io::pipe().unwrap(),
            listener: TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
            socket: UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap(),
        }));
        let start = |i| thread::spawn(move || nothing.wait(i));
        let all: Vec<_> = (0..threads_of(100_000)).map(start).collect();
        for handle in &all {
            handle.thread().interrupt();
        }
        for handle in all {
            handle.join().unwrap();
        }
    });
}
