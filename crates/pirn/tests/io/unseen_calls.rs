//! System calls that bypass libc's functions: made inline, as `rustix` makes them, or by number
//! through `syscall`. The runtime notices their effects on a descriptor.

use std::io::{self, ErrorKind, PipeReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener};
use std::os::fd::{AsRawFd, FromRawFd, IntoRawFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::sys::{self, inline};
use crate::common::{block_then, child, most_carriers, on_virtual, watched};
use libc::{c_int, c_long};
use pirn::metrics::{Carrier, CarrierState};
use pirn::thread;
use pirn_rt::arch::legacy;

/// Returns the calls that this processor has: [`legacy`] has negative numbers for others.
fn existing<const N: usize>(calls: [c_long; N]) -> impl Iterator<Item = c_long> {
    calls.into_iter().filter(|&call| call >= 0)
}

fn inline_set_nonblocking(fd: &impl AsRawFd, on: bool) {
    let on = c_int::from(on);
    let fd = fd.as_raw_fd() as usize;
    let request = libc::FIONBIO as usize;
    let result = inline(libc::SYS_ioctl, fd, request, (&raw const on).addr(), 0, 0);
    assert_eq!(result, 0);
}

fn inline_set_flags(fd: &impl AsRawFd, flags: c_int) {
    let fd = fd.as_raw_fd() as usize;
    let command = libc::F_SETFL as usize;
    assert_eq!(
        inline(libc::SYS_fcntl, fd, command, flags as usize, 0, 0),
        0
    );
}

fn inline_dup3(from: RawFd, onto: RawFd) {
    let result = inline(libc::SYS_dup3, from as usize, onto as usize, 0, 0, 0);
    assert_eq!(result, onto as isize);
}

/// Waits on a virtual thread for a byte, which another writes a little later.
fn read_what_comes_later(reader: &mut (impl Read + Send), writer: &mut (impl Write + Send)) {
    thread::scope(|scope| {
        scope.spawn(|| assert_eq!(reader.read(&mut [0]).unwrap(), 1));
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            writer.write_all(b"x").unwrap();
        });
    });
}

/// Returns a pipe that a virtual thread has waited for once, so that it is registered.
fn used_pipe() -> (PipeReader, io::PipeWriter) {
    let (mut reader, mut writer) = io::pipe().unwrap();
    read_what_comes_later(&mut reader, &mut writer);
    (reader, writer)
}

fn would_block<T: std::fmt::Debug>(result: io::Result<T>) {
    assert_eq!(result.unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[watched]
fn a_flag_that_was_set_inline_is_obeyed() {
    on_virtual(|| {
        let (mut reader, _writer) = used_pipe();
        inline_set_flags(&reader, libc::O_NONBLOCK);
        would_block(reader.read(&mut [0]));
        let (mut left, _right) = UnixStream::pair().unwrap();
        inline_set_nonblocking(&left, true);
        would_block(left.read(&mut [0]));
        let full = loop {
            if let Err(error) = left.write(&[0; 4096]) {
                break error;
            }
        };
        assert_eq!(full.kind(), ErrorKind::WouldBlock);
    });
}

#[watched]
fn a_listener_that_was_made_non_blocking_inline_does_not_block() {
    let try_it = || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        inline_set_nonblocking(&listener, true);
        would_block(listener.accept());
    };
    on_virtual(try_it);
    try_it();
}

#[watched]
fn a_flag_that_was_cleared_inline_is_obeyed() {
    let (mut left, mut right) = UnixStream::pair().unwrap();
    left.set_nonblocking(true).unwrap();
    would_block(left.read(&mut [0]));
    inline_set_nonblocking(&left, false);
    read_what_comes_later(&mut left, &mut right);
}

#[watched]
fn a_timeout_that_was_set_inline_before_the_first_wait_fires() {
    on_virtual(|| {
        let (mut left, _right) = UnixStream::pair().unwrap();
        let time = libc::timeval {
            tv_sec: 0,
            tv_usec: 20_000,
        };
        let result = inline(
            libc::SYS_setsockopt,
            left.as_raw_fd() as usize,
            libc::SOL_SOCKET as usize,
            libc::SO_RCVTIMEO as usize,
            (&raw const time).addr(),
            size_of_val(&time),
        );
        assert_eq!(result, 0);
        would_block(left.read(&mut [0]));
        would_block(left.read(&mut [0]));
    });
}

#[watched]
fn a_number_that_means_another_file_since_an_inline_dup2_is_waited_for_anew() {
    let (mut reader, _old) = used_pipe();
    let (other, mut writer) = io::pipe().unwrap();
    inline_dup3(other.as_raw_fd(), reader.as_raw_fd());
    read_what_comes_later(&mut reader, &mut writer);
}

#[watched]
fn a_number_that_was_closed_inline_and_reused_is_waited_for_anew() {
    on_virtual(|| {
        let (reader, _old) = used_pipe();
        let number = reader.into_raw_fd();
        // The runtime does not see the call that reuses the number, either.
        let (other, mut writer) = io::pipe().unwrap();
        assert_eq!(inline(libc::SYS_close, number as usize, 0, 0, 0, 0), 0);
        let command = libc::F_DUPFD as usize;
        let from = other.as_raw_fd() as usize;
        let reused = inline(libc::SYS_fcntl, from, command, number as usize, 0, 0);
        assert_eq!(reused, number as isize);
        // SAFETY: it is a pipe's, and has no other owner.
        let mut reader = unsafe { PipeReader::from_raw_fd(number) };
        let read = thread::spawn(move || reader.read(&mut [0]).unwrap());
        thread::sleep(Duration::from_millis(5));
        writer.write_all(b"x").unwrap();
        assert_eq!(read.join().unwrap(), 1);
    });
}

/// In a process of its own, as the test of many numbers below.
#[watched]
fn a_reader_of_a_number_that_was_closed_inline_wakes() {
    child::isolated(&[], || {
        let (reader, _writer) = used_pipe();
        let number = reader.into_raw_fd();
        let begun = AtomicBool::new(false);
        thread::scope(|scope| {
            scope.spawn(|| {
                begun.store(true, SeqCst);
                let error = sys::read(number, &mut [0]).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EBADF));
            });
            scope.spawn(|| {
                while !begun.load(SeqCst) {
                    thread::yield_now();
                }
                thread::sleep(Duration::from_millis(5));
                assert_eq!(inline(libc::SYS_close, number as usize, 0, 0, 0, 0), 0);
            });
        });
    });
}

/// More descriptors than are looked at in one step. In a process of their own: a number is looked
/// at once, a second after the first wait of any thread.
#[watched(alone)]
fn all_of_many_numbers_that_mean_another_file_are_waited_for_anew() {
    while !all_of_many_numbers_are_waited_for_anew() {
        // The machine was slow, and some were looked at before they meant the other file.
    }
}

/// Returns whether the numbers were changed in time.
fn all_of_many_numbers_are_waited_for_anew() -> bool {
    const MANY: usize = 300;
    let pipes = Vec::from_iter((0..MANY).map(|_| io::pipe().unwrap()));
    let (other, mut writer) = io::pipe().unwrap();
    let (may_begin, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
    let read = |number: RawFd| {
        while !may_begin.load(SeqCst) {
            thread::yield_now();
        }
        begun.fetch_add(1, SeqCst);
        sys::read(number, &mut [0])
    };
    thread::scope(|scope| {
        let number = |(reader, _): &(io::PipeReader, _)| reader.as_raw_fd();
        let numbers = Vec::from_iter(pipes.iter().map(number));
        let readers = Vec::from_iter(numbers.iter().map(|&fd| scope.spawn(move || read(fd))));
        let first = Instant::now();
        may_begin.store(true, SeqCst);
        while begun.load(SeqCst) < MANY {
            thread::yield_now();
        }
        for &number in &numbers {
            inline_dup3(other.as_raw_fd(), number);
        }
        let in_time = first.elapsed() < Duration::from_millis(900);
        match in_time {
            true => writer.write_all(&[0; MANY]).unwrap(),
            // Those that wait are woken by a change that is seen.
            false => numbers
                .iter()
                .for_each(|&fd| sys::dup2(other.as_raw_fd(), fd).unwrap()),
        }
        drop(writer);
        for reader in readers {
            let result = reader.join().unwrap();
            assert!(!in_time || result.is_ok_and(|count| count == 1));
        }
        in_time
    })
}

/// The carrier of the thread that waits stands in for another, and rests when that is asleep. So
/// only a kick, or the sleeper itself, can see to it that the number is looked at again.
#[watched]
fn who_waited_on_a_spare_carrier_is_woken_by_another() {
    let one = [("PIRN_PARALLELISM", "1"), ("PIRN_SPARE_CARRIERS", "1")];
    child::isolated(&one, || {
        let (mut reader, _old) = io::pipe().unwrap();
        let (other, mut writer) = io::pipe().unwrap();
        let number = reader.as_raw_fd();
        let spare_runs = AtomicBool::new(false);
        let keep_until = |over: &dyn Fn() -> bool| {
            thread::no_preemption(|| {
                while !over() {
                    std::hint::spin_loop();
                }
            });
        };
        let sleeps = |carrier: &Carrier| !carrier.spare && carrier.state == CarrierState::Sleeping;
        thread::scope(|scope| {
            scope.spawn(|| keep_until(&|| spare_runs.load(SeqCst)));
            scope.spawn(|| {
                spare_runs.store(true, SeqCst);
                keep_until(&|| pirn::metrics::snapshot().carriers().iter().any(sleeps));
                assert_eq!(reader.read(&mut [0]).unwrap(), 1);
            });
            while pirn::metrics::snapshot()["threads.waiting"] == 0 {
                std::thread::yield_now();
            }
            inline_dup3(other.as_raw_fd(), number);
            writer.write_all(b"x").unwrap();
        });
    });
}

/// Calls the function `syscall(2)`.
fn by_number(number: c_long, a: RawFd, b: usize, c: usize) -> io::Result<c_long> {
    // SAFETY: the callers pass what the call takes.
    sys::check(unsafe { libc::syscall(number, a, b, c) })
}

#[watched]
fn a_close_by_number_wakes_the_readers() {
    let (reader, _writer) = used_pipe();
    let number = reader.into_raw_fd();
    block_then(
        10 * most_carriers(),
        |_| {
            let error = sys::read(number, &mut [0]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        },
        || {
            thread::sleep(Duration::from_millis(1));
            by_number(libc::SYS_close, number, 0, 0).unwrap();
        },
    );
}

#[watched]
fn duplicates_made_by_number_are_known() {
    for call in existing([legacy::DUP2, libc::SYS_dup3]) {
        let (mut reader, _old) = used_pipe();
        let (other, mut writer) = io::pipe().unwrap();
        let onto = reader.as_raw_fd() as usize;
        by_number(call, other.as_raw_fd(), onto, 0).unwrap();
        read_what_comes_later(&mut reader, &mut writer);
    }
}

#[watched]
fn reads_and_writes_by_number_do_not_keep_a_carrier() {
    let pipes = crate::common::pipes(2 * most_carriers());
    block_then(
        pipes.len(),
        |i| {
            let mut byte = [0];
            let address = byte.as_mut_ptr().addr();
            let count = by_number(libc::SYS_read, pipes[i].0.as_raw_fd(), address, 1);
            assert_eq!((count.unwrap(), byte), (1, *b"x"));
        },
        || {
            for (_, writer) in &pipes {
                let byte = b"x".as_ptr().addr();
                by_number(libc::SYS_write, writer.as_raw_fd(), byte, 1).unwrap();
            }
        },
    );
}

/// Waits by number until a descriptor is readable; `time` may be null.
fn wait_by_number(number: c_long, fd: RawFd, time: *const libc::timespec) -> c_long {
    let mut entry = libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let no_mask = [0usize, 8];
    // SAFETY: one entry or set, a time, and the address and size of no mask.
    sys::check(unsafe {
        match number {
            legacy::POLL => libc::syscall(number, &raw mut entry, 1, -1),
            libc::SYS_ppoll => libc::syscall(number, &raw mut entry, 1, time, 0, 8),
            _ => {
                let mut set: libc::fd_set = std::mem::zeroed();
                libc::FD_SET(fd, &mut set);
                let (set, mask) = (&raw mut set, no_mask.as_ptr());
                libc::syscall(libc::SYS_pselect6, fd + 1, set, 0, 0, time, mask)
            }
        }
    })
    .unwrap()
}

#[watched]
fn polls_by_number_do_not_keep_a_carrier() {
    for number in existing([legacy::POLL, libc::SYS_ppoll, libc::SYS_pselect6]) {
        let pipes = crate::common::pipes(2 * most_carriers());
        let wait = |i: usize| {
            let fd = pipes[i].0.as_raw_fd();
            assert_eq!(wait_by_number(number, fd, std::ptr::null()), 1);
        };
        block_then(pipes.len(), wait, || crate::common::write_to_all(&pipes));
    }
}

#[watched]
fn polls_by_number_store_the_time_left() {
    /// In memory that cannot be written.
    static CENTURY: libc::timespec = libc::timespec {
        tv_sec: 100 * 365 * 86_400,
        tv_nsec: 0,
    };
    let try_it = || {
        let (reader, mut writer) = io::pipe().unwrap();
        let fd = reader.as_raw_fd();
        for number in [libc::SYS_ppoll, libc::SYS_pselect6] {
            let mut time = sys::timespec(Duration::from_millis(1));
            assert_eq!(wait_by_number(number, fd, &raw mut time), 0);
            assert_eq!((time.tv_sec, time.tv_nsec), (0, 0));
        }
        writer.write_all(b"x").unwrap();
        for number in [libc::SYS_ppoll, libc::SYS_pselect6] {
            let mut time = sys::timespec(Duration::from_secs(1_000_000));
            assert_eq!(wait_by_number(number, fd, &raw mut time), 1);
            assert!((1..1_000_000).contains(&time.tv_sec));
            assert_eq!(wait_by_number(number, fd, &raw const CENTURY), 1);
        }
    };
    on_virtual(try_it);
    try_it();
}

#[watched]
fn sleeps_by_number_do_not_keep_a_carrier() {
    let (mut reader, mut writer) = io::pipe().unwrap();
    thread::scope(|scope| {
        for _ in 0..2 * most_carriers() {
            scope.spawn(|| {
                let time = sys::timespec(Duration::from_secs(1));
                // SAFETY: a valid timespec.
                let result = unsafe { libc::syscall(libc::SYS_nanosleep, &raw const time, 0) };
                assert_eq!(result, 0);
                let clock = libc::CLOCK_MONOTONIC;
                let time = &raw const time;
                // SAFETY: a valid timespec.
                let result = unsafe { libc::syscall(libc::SYS_clock_nanosleep, clock, 0, time, 0) };
                assert_eq!(result, 0);
            });
        }
        // While they sleep.
        scope.spawn(move || writer.write_all(b"x").unwrap());
        scope.spawn(move || assert_eq!(reader.read(&mut [0]).unwrap(), 1));
    });
}

#[watched]
fn errors_by_number_are_those_of_the_kernel() {
    let try_it = || {
        for call in [
            libc::SYS_read,
            libc::SYS_close,
            libc::SYS_dup,
            libc::SYS_ioctl,
        ] {
            let error = by_number(call, 1 << 30, 0, 0).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        }
        // SAFETY: no timespec.
        let result = unsafe { libc::syscall(libc::SYS_clock_nanosleep, 0, 0, 0, 0) };
        assert_eq!((result, sys::errno()), (-1, libc::EFAULT));
    };
    try_it();
    on_virtual(try_it);
}
