//! System calls by number, of which the kernel's state would be the carrier's.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::SeqCst};
use std::sync::mpsc;
use std::time::Duration;
use std::{mem, ptr, thread};

use libc::{c_int, c_long, siginfo_t, sigset_t, timespec};

use super::{checked, everywhere, nowhere};
use crate::common::kernel::sleeps_in;
use crate::common::{child, on_virtual, skip, sys, watched};

const SIGNAL: c_int = libc::SIGUSR1;
const BIT: u64 = 1 << (SIGNAL - 1);
const SET: usize = size_of::<u64>();

/// Changes the mask by number. Returns that before.
fn change(how: c_int, set: u64) -> u64 {
    let mut old = 0_u64;
    // SAFETY: a set to read and one to write.
    let result = unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, &set, &mut old, SET) };
    assert_eq!(checked(result), Ok(0));
    old
}

/// Returns the mask that the kernel has for this OS thread.
fn kernels() -> u64 {
    let mut old = 0_u64;
    let place = (&raw mut old) as usize;
    assert_eq!(
        sys::inline(libc::SYS_rt_sigprocmask, 0, 0, place, SET, 0),
        0
    );
    old
}

#[watched]
fn a_mask_by_number_is_the_threads_and_not_the_carriers() {
    child::isolated(&[], || {
        everywhere(|| {
            assert_eq!(change(libc::SIG_BLOCK, BIT) & BIT, 0);
            // SAFETY: a set to write to.
            unsafe {
                let mut set: sigset_t = mem::zeroed();
                assert_eq!(libc::sigprocmask(0, ptr::null(), &mut set), 0);
                assert_eq!(libc::sigismember(&set, SIGNAL), 1);
            }
            assert_ne!(change(libc::SIG_UNBLOCK, BIT) & BIT, 0);
            assert_eq!(change(libc::SIG_BLOCK, 0) & BIT, 0);
        });
        on_virtual(|| {
            let before = kernels();
            change(libc::SIG_SETMASK, !0);
            assert_eq!(kernels(), before);
            change(libc::SIG_SETMASK, 0);
            assert_eq!(kernels(), before);
        });
    });
}

#[watched]
fn a_mask_by_number_has_the_kernels_errors() {
    everywhere(|| {
        let call = |how: c_int, set: *const u64, old: *mut u64, size: usize| {
            // SAFETY: the kernel says so if it may not read or write there.
            checked(unsafe { libc::syscall(libc::SYS_rt_sigprocmask, how, set, old, size) })
        };
        let (none, set) = (ptr::null_mut(), 0_u64);
        assert_eq!(call(7, &set, none, SET), Err(libc::EINVAL));
        assert_eq!(call(libc::SIG_BLOCK, &set, none, 128), Err(libc::EINVAL));
        assert_eq!(
            call(libc::SIG_BLOCK, nowhere(), none, SET),
            Err(libc::EFAULT)
        );
        assert_eq!(
            call(libc::SIG_BLOCK, &set, nowhere(), SET),
            Err(libc::EFAULT)
        );
        assert_eq!(call(7, ptr::null(), none, SET), Ok(0), "nothing is changed");
    });
}

#[watched]
fn a_signal_is_waited_for_by_number() {
    child::isolated(&[], || {
        everywhere(|| {
            change(libc::SIG_BLOCK, BIT);
            // SAFETY: no pointers.
            assert_eq!(unsafe { libc::raise(SIGNAL) }, 0);
            let mut pending = 0_u64;
            // SAFETY: sets to write to, and to read, with their sizes.
            unsafe {
                let result = libc::syscall(libc::SYS_rt_sigpending, &mut pending, SET);
                assert_eq!((checked(result), pending & BIT), (Ok(0), BIT));
                let mut info: siginfo_t = mem::zeroed();
                let wait = |info: *mut siginfo_t, time: &timespec| {
                    checked(libc::syscall(
                        libc::SYS_rt_sigtimedwait,
                        &BIT,
                        info,
                        time,
                        SET,
                    ))
                };
                let second = sys::timespec(Duration::from_secs(1));
                assert_eq!(wait(&mut info, &second), Ok(SIGNAL.into()));
                assert_eq!(info.si_signo, SIGNAL);
                let none = sys::timespec(Duration::ZERO);
                assert_eq!(wait(ptr::null_mut(), &none), Err(libc::EAGAIN));
            }
        });
    });
}

#[watched]
fn the_place_that_the_kernel_clears_stays_the_carriers() {
    on_virtual(|| {
        let mut place: c_int = 0;
        // SAFETY: the kernel does not get to know the place.
        let id = unsafe { libc::syscall(libc::SYS_set_tid_address, &mut place) };
        // SAFETY: no arguments.
        assert_eq!(id, i64::from(unsafe { libc::gettid() }));
    });
}

/// A queue of Linux's old asynchronous I/O, for its wait, which no signal's `SA_RESTART` restarts.
struct Queue(usize);

impl Queue {
    fn new() -> Queue {
        let mut queue = 0_usize;
        // SAFETY: a word to write to.
        let result = unsafe { libc::syscall(libc::SYS_io_setup, 1, &mut queue) };
        assert_eq!(checked(result), Ok(0));
        Queue(queue)
    }

    /// Waits for an event, of which there will be none.
    fn wait(&self, time: Duration) -> Result<c_long, c_int> {
        let (mut event, time) = ([0_u64; 4], sys::timespec(time));
        // SAFETY: room for one `struct io_event`.
        checked(unsafe { libc::syscall(libc::SYS_io_getevents, self.0, 1, 1, &mut event, &time) })
    }
}

/// Sends the signal of time slices to an OS thread once it waits in `io_getevents`.
fn urge(carrier: &AtomicIsize) {
    let id = loop {
        match carrier.load(SeqCst) {
            0 => thread::yield_now(),
            id => break id as usize,
        }
    };
    while !sleeps_in(id, &[libc::SYS_io_getevents]) {
        thread::yield_now();
    }
    let (process, signal) = (std::process::id() as usize, libc::SIGURG as usize);
    assert_eq!(sys::inline(libc::SYS_tgkill, process, id, signal, 0, 0), 0);
}

#[watched]
fn only_a_programs_handler_ends_an_unknown_call() {
    static HANDLED: AtomicBool = AtomicBool::new(false);
    extern "C" fn handler(_: c_int) {
        HANDLED.store(true, SeqCst);
    }
    child::isolated(&[], || {
        sys::on_signal(SIGNAL, libc::SA_RESTART, handler);
        let (carrier, done) = (AtomicIsize::new(0), AtomicBool::new(false));
        pirn::thread::scope(|scope| {
            let (sender, id) = mpsc::channel();
            scope.spawn({
                let (carrier, done) = (&carrier, &done);
                move || {
                    let queue = Queue::new();
                    pirn::thread::no_preemption(|| {
                        carrier.store(sys::inline(libc::SYS_gettid, 0, 0, 0, 0, 0), SeqCst);
                        assert_eq!(queue.wait(Duration::from_secs(1)), Ok(0));
                    });
                    // SAFETY: no arguments.
                    sender.send(unsafe { libc::pthread_self() }).unwrap();
                    assert_eq!(queue.wait(Duration::from_secs(1000)), Err(libc::EINTR));
                    assert!(HANDLED.load(SeqCst));
                    done.store(true, SeqCst);
                }
            });
            urge(&carrier);
            let waiting = id.recv().unwrap();
            while !done.load(SeqCst) {
                // SAFETY: it is joined later. It may be on its way to the call, or back.
                assert_eq!(unsafe { libc::pthread_kill(waiting, SIGNAL) }, 0);
                thread::sleep(Duration::from_millis(1));
            }
        });
    });
}

// linux/io_uring.h
const SINGLE_ISSUER: u32 = 1 << 12;
const DEFER_TASKRUN: u32 = 1 << 13;
const REGISTER_RING_FDS: c_int = 20;

/// Makes a ring that may be used by one OS thread alone. Fails where rings are not allowed.
fn ring() -> Result<OwnedFd, c_int> {
    let mut params = [0_u32; 30];
    params[2] = SINGLE_ISSUER | DEFER_TASKRUN;
    // SAFETY: the size of `struct io_uring_params`.
    let ring = checked(unsafe { libc::syscall(libc::SYS_io_uring_setup, 4, &mut params) })?;
    // SAFETY: it is new, and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(ring as c_int) })
}

/// Submits what is in the ring: nothing.
fn submit(ring: &OwnedFd) -> Result<c_long, c_int> {
    let none = ptr::null::<u8>();
    // SAFETY: no pointers.
    checked(unsafe {
        libc::syscall(
            libc::SYS_io_uring_enter,
            ring.as_raw_fd(),
            1,
            0,
            0,
            none,
            0_usize,
        )
    })
}

#[watched]
fn a_ring_made_on_a_virtual_thread_is_not_tied_to_a_carrier() {
    let natively = match ring() {
        Ok(ring) => ring,
        Err(error) => return skip(&format!("io_uring_setup: error {error}")),
    };
    assert_eq!(submit(&natively), Ok(0));
    let elsewhere = thread::spawn(move || submit(&natively)).join().unwrap();
    assert_eq!(
        elsewhere,
        Err(libc::EEXIST),
        "a platform thread's ring is as it was asked for"
    );

    let ring = on_virtual(|| {
        let ring = ring().unwrap();
        assert_eq!(submit(&ring), Ok(0));
        // The ring's number, to be entered in the table of the OS thread.
        let mut entry = [u64::from(!0_u32) | (ring.as_raw_fd() as u64) << 32, 0];
        // SAFETY: one `struct io_uring_rsrc_update`.
        let registered = unsafe {
            let (number, what) = (libc::SYS_io_uring_register, REGISTER_RING_FDS);
            libc::syscall(number, ring.as_raw_fd(), what, &mut entry, 1)
        };
        assert_eq!(checked(registered), Err(libc::EINVAL));
        ring
    });
    assert_eq!(thread::spawn(move || submit(&ring)).join().unwrap(), Ok(0));
}
