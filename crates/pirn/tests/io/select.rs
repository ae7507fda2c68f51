//! `select` and `pselect`, called by foreign code on virtual threads.
//!
//! Each test has its own process, since these calls know only descriptors below 1024.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::ptr;
use std::time::{Duration, Instant};

use crate::common::sys::{check, timespec};
use crate::common::{block_then, pipes, watched, write_to_all};

const SHORT: Duration = Duration::from_millis(20);

/// More than the carriers of most machines, within the 1024 descriptors.
const PIPES: usize = 100;

/// Returns a set for `select` with one descriptor in it.
fn set_of(fd: BorrowedFd<'_>) -> libc::fd_set {
    assert!(fd.as_raw_fd() < libc::FD_SETSIZE as i32);
    let mut set = MaybeUninit::zeroed();
    // SAFETY: all-zero is the empty set, and the descriptor fits in.
    unsafe {
        libc::FD_SET(fd.as_raw_fd(), set.as_mut_ptr());
        set.assume_init()
    }
}

#[watched(alone)]
fn select_waits_and_times_out() {
    let pipes = pipes(PIPES);
    let select = |fd: BorrowedFd<'_>, timeout: *mut libc::timeval| {
        let (mut set, null) = (set_of(fd), ptr::null_mut());
        // SAFETY: the set and the timeout are valid, or null.
        let count = unsafe { libc::select(fd.as_raw_fd() + 1, &mut set, null, null, timeout) };
        // SAFETY: the descriptor fits into the set.
        let ready = unsafe { libc::FD_ISSET(fd.as_raw_fd(), &set) };
        (check(count).unwrap(), ready)
    };
    block_then(
        pipes.len(),
        |i| {
            let mut timeout = libc::timeval {
                tv_sec: 0,
                tv_usec: SHORT.as_micros() as _,
            };
            let begin = Instant::now();
            assert_eq!(select(pipes[i].0.as_fd(), &mut timeout), (0, false));
            assert!(begin.elapsed() >= SHORT);
            // Linux stores the time left.
            assert_eq!((timeout.tv_sec, timeout.tv_usec), (0, 0));
        },
        || (),
    );
    block_then(
        pipes.len(),
        |i| assert_eq!(select(pipes[i].0.as_fd(), ptr::null_mut()), (1, true)),
        || write_to_all(&pipes),
    );
}

#[watched(alone)]
fn pselect_waits_and_times_out() {
    let pipes = pipes(PIPES);
    let pselect = |fd: BorrowedFd<'_>, timeout: *const libc::timespec| {
        let (mut set, null) = (set_of(fd), ptr::null_mut());
        let top = fd.as_raw_fd() + 1;
        // SAFETY: the set and the timeout are valid, or null; no signal mask.
        let count = unsafe { libc::pselect(top, &mut set, null, null, timeout, ptr::null()) };
        check(count).unwrap()
    };
    block_then(
        pipes.len(),
        |i| {
            let begin = Instant::now();
            let timeout = timespec(SHORT);
            assert_eq!(pselect(pipes[i].0.as_fd(), &timeout), 0);
            assert!(begin.elapsed() >= SHORT);
            // Unlike `select`, it leaves the timeout alone.
            assert_eq!(timeout.tv_nsec, timespec(SHORT).tv_nsec);
        },
        || (),
    );
    block_then(
        pipes.len(),
        |i| assert_eq!(pselect(pipes[i].0.as_fd(), ptr::null()), 1),
        || write_to_all(&pipes),
    );
}
