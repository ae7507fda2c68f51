//! `poll` and `epoll`, called by foreign code on virtual threads. (`select` is in `select.rs`,
//! event and timer descriptors and the C sleeps are in `c/sleeps_and_timers.rs`.)

use std::io::{self, Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;
use std::time::{Duration, Instant};

use crate::common::sys::{self, check, entry, poll, timespec};
use crate::common::{
    block_then, crowd, many, many_files, most_carriers, on_virtual, pipes, watched, write_to_all,
};
use libc::{EPOLLET, EPOLLIN, EPOLLONESHOT, EPOLLOUT, POLLHUP, POLLIN, POLLNVAL, POLLOUT};
use pirn::thread;

/// A time-out, in milliseconds and as a duration.
const SHORT_MS: i32 = 20;
const SHORT: Duration = Duration::from_millis(SHORT_MS as u64);
/// The kernel counts the milliseconds of `poll` and `epoll_wait` by a coarse clock.
const LEAST: Duration = Duration::from_millis(SHORT_MS as u64 - 5);

#[watched]
fn poll_times_out() {
    let (reader, _writer) = io::pipe().unwrap();
    crowd(|i| {
        let begin = Instant::now();
        if i % 2 == 0 {
            let mut entries = [entry(reader.as_fd(), POLLIN)];
            assert_eq!(poll(&mut entries, SHORT_MS).unwrap(), 0);
            assert_eq!(entries[0].revents, 0);
        } else {
            // No descriptors: the portable way to sleep.
            assert_eq!(poll(&mut [], SHORT_MS).unwrap(), 0);
        }
        assert!(begin.elapsed() >= LEAST);
    });
}

#[watched]
fn poll_with_zero_only_looks() {
    on_virtual(|| {
        let (reader, mut writer) = io::pipe().unwrap();
        let mut entries = [
            entry(reader.as_fd(), POLLIN),
            entry(writer.as_fd(), POLLOUT),
        ];
        assert_eq!(poll(&mut entries, 0).unwrap(), 1);
        assert_eq!((entries[0].revents, entries[1].revents), (0, POLLOUT));
        writer.write_all(b"x").unwrap();
        assert_eq!(poll(&mut entries, 0).unwrap(), 2);
    });
}

#[watched]
fn poll_waits_for_any_of_several() {
    let pipes = pipes(4 * most_carriers());
    block_then(
        pipes.len(),
        |i| {
            // Everybody watches the same four and one of their own.
            let mut entries: Vec<_> = (0..4)
                .chain([i.max(4)])
                .map(|i| entry(pipes[i % pipes.len()].0.as_fd(), POLLIN))
                .collect();
            assert!(poll(&mut entries, -1).unwrap() >= 1);
            assert!(entries.iter().any(|entry| entry.revents == POLLIN));
        },
        // One byte, which no thread reads: all threads see it.
        || write_to_all(&pipes[3..4]),
    );
}

#[watched]
fn poll_of_many_wakes_each_for_its_own() {
    let pipes = pipes(many_files());
    block_then(
        pipes.len(),
        |i| {
            let mut entries = [entry(pipes[i].0.as_fd(), POLLIN)];
            assert_eq!(poll(&mut entries, -1).unwrap(), 1);
            assert_eq!((&pipes[i].0).read(&mut [0; 2]).unwrap(), 1);
        },
        || write_to_all(&pipes),
    );
}

#[watched]
fn poll_tells_of_ends_and_errors() {
    on_virtual(|| {
        let (reader, writer) = io::pipe().unwrap();
        let waiting = thread::spawn(move || {
            let mut entries = [entry(reader.as_fd(), POLLIN)];
            assert_eq!(poll(&mut entries, -1).unwrap(), 1);
            entries[0].revents
        });
        thread::yield_now();
        drop(writer);
        assert_eq!(waiting.join().unwrap(), POLLHUP);

        let nowhere = libc::pollfd {
            fd: 1_000_000_000,
            events: POLLIN,
            revents: 0,
        };
        let ignored = libc::pollfd { fd: -1, ..nowhere };
        let mut entries = [nowhere, ignored];
        assert_eq!(poll(&mut entries, -1).unwrap(), 1);
        assert_eq!((entries[0].revents, entries[1].revents), (POLLNVAL, 0));
    });
}

#[watched]
fn poll_between_both_kinds_of_thread() {
    let (reader, writer) = io::pipe().unwrap();
    let wait = || {
        let mut entries = [entry(reader.as_fd(), POLLIN)];
        assert_eq!(poll(&mut entries, -1).unwrap(), 1);
    };
    std::thread::scope(|platform| {
        platform.spawn(wait);
        block_then(many(), |_| wait(), || (&writer).write_all(b"x").unwrap());
    });
}

#[watched]
fn ppoll_waits_and_times_out() {
    let pipes = pipes(4 * most_carriers());
    let ppoll = |fd: BorrowedFd<'_>, timeout: Option<Duration>| {
        let mut entries = [entry(fd, POLLIN)];
        let timeout = timeout.map(timespec);
        let timeout = timeout.as_ref().map_or(ptr::null(), ptr::from_ref);
        // SAFETY: one entry; the timeout is null or valid; no signal mask.
        check(unsafe { libc::ppoll(entries.as_mut_ptr(), 1, timeout, ptr::null()) }).unwrap()
    };
    block_then(
        pipes.len(),
        |i| {
            let begin = Instant::now();
            assert_eq!(ppoll(pipes[i].0.as_fd(), Some(SHORT)), 0);
            assert!(begin.elapsed() >= SHORT);
        },
        || (),
    );
    block_then(
        pipes.len(),
        |i| assert_eq!(ppoll(pipes[i].0.as_fd(), None), 1),
        || write_to_all(&pipes),
    );
}

/// An epoll instance.
struct Epoll(OwnedFd);

impl Epoll {
    fn new() -> Epoll {
        // SAFETY: touches no memory.
        Epoll(sys::own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) }).unwrap())
    }

    /// `epoll_ctl` with `EPOLL_CTL_ADD` or `_MOD`; the data is the descriptor's number.
    fn control(&self, operation: i32, fd: &impl AsRawFd, events: i32) {
        let fd = fd.as_raw_fd();
        let mut event = libc::epoll_event {
            events: events as u32,
            u64: fd as u64,
        };
        // SAFETY: the event is valid.
        check(unsafe { libc::epoll_ctl(self.0.as_raw_fd(), operation, fd, &mut event) }).unwrap();
    }

    fn add(&self, fd: &impl AsRawFd, events: i32) {
        self.control(libc::EPOLL_CTL_ADD, fd, events);
    }

    /// Returns the (descriptor, events) pairs of one `epoll_wait` with room for eight.
    fn wait(&self, timeout_ms: i32) -> Vec<(i32, i32)> {
        let mut events = [libc::epoll_event { events: 0, u64: 0 }; 8];
        // SAFETY: room for eight events.
        let count = check(unsafe {
            libc::epoll_wait(self.0.as_raw_fd(), events.as_mut_ptr(), 8, timeout_ms)
        })
        .unwrap();
        let events = events[..count as usize].iter();
        events
            .map(|event| (event.u64 as i32, event.events as i32))
            .collect()
    }
}

#[watched]
fn epoll_wait_times_out() {
    let (reader, _writer) = io::pipe().unwrap();
    let shared = Epoll::new();
    shared.add(&reader, EPOLLIN);
    crowd(|_| {
        let begin = Instant::now();
        assert_eq!(shared.wait(SHORT_MS), []);
        assert!(begin.elapsed() >= LEAST);
        assert_eq!(shared.wait(0), []);
    });
}

#[watched]
fn epoll_wait_parks() {
    let pipes = pipes(many_files());
    block_then(
        pipes.len(),
        |i| {
            let epoll = Epoll::new();
            epoll.add(&pipes[i].0, EPOLLIN);
            assert_eq!(epoll.wait(-1), [(pipes[i].0.as_raw_fd(), EPOLLIN)]);
        },
        || write_to_all(&pipes),
    );
}

#[watched]
fn level_triggered_epoll_tells_again() {
    on_virtual(|| {
        let (mut reader, mut writer) = io::pipe().unwrap();
        let epoll = Epoll::new();
        epoll.add(&reader, EPOLLIN);
        epoll.add(&writer, EPOLLOUT);
        writer.write_all(b"ab").unwrap();
        for _ in 0..3 {
            assert_eq!(epoll.wait(-1).len(), 2);
        }
        reader.read_exact(&mut [0; 2]).unwrap();
        assert_eq!(epoll.wait(-1), [(writer.as_raw_fd(), EPOLLOUT)]);
    });
}

#[watched]
fn edge_triggered_epoll_tells_once() {
    on_virtual(|| {
        let (reader, mut writer) = io::pipe().unwrap();
        let epoll = Epoll::new();
        epoll.add(&reader, EPOLLIN | EPOLLET);
        let ready = [(reader.as_raw_fd(), EPOLLIN)];
        for _ in 0..3 {
            writer.write_all(b"x").unwrap();
            assert_eq!(epoll.wait(-1), ready);
            // Still unread, but no new event.
            assert_eq!(epoll.wait(SHORT_MS), []);
        }
    });
}

#[watched]
fn one_shot_epoll_tells_until_rearmed() {
    on_virtual(|| {
        let (reader, mut writer) = io::pipe().unwrap();
        let epoll = Epoll::new();
        epoll.add(&reader, EPOLLIN | EPOLLONESHOT);
        writer.write_all(b"x").unwrap();
        assert_eq!(epoll.wait(-1).len(), 1);
        assert_eq!(epoll.wait(SHORT_MS), []);
        epoll.control(libc::EPOLL_CTL_MOD, &reader, EPOLLIN | EPOLLONESHOT);
        assert_eq!(epoll.wait(-1).len(), 1);
    });
}

#[watched]
fn a_descriptor_added_meanwhile_wakes_epoll_wait() {
    let epoll = Epoll::new();
    let (reader, mut writer) = io::pipe().unwrap();
    let number = reader.as_raw_fd();
    block_then(
        4 * most_carriers(),
        |_| assert_eq!(epoll.wait(-1), [(number, EPOLLIN)]),
        || {
            writer.write_all(b"x").unwrap();
            epoll.add(&reader, EPOLLIN);
        },
    );
}

#[watched]
fn an_epoll_instance_can_be_polled() {
    let (reader, writer) = io::pipe().unwrap();
    let (inner, outer) = (Epoll::new(), Epoll::new());
    inner.add(&reader, EPOLLIN);
    outer.add(&inner.0, EPOLLIN);
    block_then(
        4 * most_carriers(),
        |i| {
            if i % 2 == 0 {
                assert_eq!(outer.wait(-1), [(inner.0.as_raw_fd(), EPOLLIN)]);
            } else {
                let mut entries = [entry(inner.0.as_fd(), POLLIN)];
                assert_eq!(poll(&mut entries, -1).unwrap(), 1);
            }
        },
        || (&writer).write_all(b"x").unwrap(),
    );
}
