//! Unmapped addresses: `EFAULT`, as from the kernel, on both kinds of threads.

use std::io::Error;
use std::net::UdpSocket;
use std::os::fd::AsRawFd;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

use crate::common::{child, on_virtual, sys, watched};
use libc::{c_int, c_long};

/// Nothing is ever mapped here.
const NOWHERE: usize = 8;

fn nowhere<T>() -> *mut T {
    ptr::without_provenance_mut(NOWHERE)
}

/// Memory that may not be read.
fn forbidden<T>() -> *mut T {
    const FLAGS: c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
    // SAFETY: a fresh mapping.
    let page = unsafe { libc::mmap(ptr::null_mut(), 4096, libc::PROT_NONE, FLAGS, -1, 0) };
    assert_ne!(page, libc::MAP_FAILED);
    page.cast()
}

/// Runs a call on a virtual thread and on a platform thread, and expects an error number from both.
#[track_caller]
fn fails(expected: c_int, call: impl Fn() -> i64 + Sync + Send + Copy + 'static) {
    on_virtual(|| ()); // The runtime's handler of faults is in place.
    let error = move || match call() {
        -1 => Error::last_os_error().raw_os_error().unwrap(),
        result => panic!("{result}"),
    };
    assert_eq!(on_virtual(error), expected, "on a virtual thread");
    assert_eq!(error(), expected, "on a platform thread");
}

/// Does the same as [`fails`], on a virtual thread only: on others libc itself reads the memory.
#[track_caller]
fn fails_on_virtual(expected: c_int, call: impl Fn() -> i64 + Send + 'static) {
    let error = on_virtual(move || (call(), sys::errno()));
    assert_eq!(error, (-1, expected));
}

#[watched]
fn vectors_of_buffers() {
    let pipe = std::io::pipe().unwrap();
    let (reader, writer) = (pipe.0.as_raw_fd(), pipe.1.as_raw_fd());
    // SAFETY: the kernel, or what stands in for it, looks at the address; here and below.
    unsafe {
        fails(libc::EFAULT, move || {
            libc::writev(writer, nowhere(), 1) as i64
        });
        fails(libc::EFAULT, move || {
            libc::writev(writer, nowhere(), 2) as i64
        });
        fails(libc::EINVAL, move || {
            libc::writev(writer, nowhere(), -1) as i64
        });
        fails(libc::EFAULT, move || {
            libc::readv(reader, nowhere(), 2) as i64
        });
    }
}

#[watched]
fn addresses_of_messages() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let fd = socket.as_raw_fd();
    // SAFETY: the kernel checks the pointers.
    unsafe {
        let byte = b"x".as_ptr().addr();
        fails(libc::EFAULT, move || {
            let byte = ptr::without_provenance(byte);
            libc::sendto(fd, byte, 1, 0, nowhere(), 16) as i64
        });
        fails(libc::EFAULT, move || libc::sendmsg(fd, nowhere(), 0) as i64);
        fails(libc::EFAULT, move || {
            libc::recvmsg(fd, nowhere(), libc::MSG_DONTWAIT) as i64
        });
    }
}

#[watched]
fn times_of_sleeps() {
    let monotonic = libc::CLOCK_MONOTONIC;
    // SAFETY: the kernel checks the pointers.
    unsafe {
        fails(libc::EFAULT, || {
            libc::nanosleep(nowhere(), ptr::null_mut()).into()
        });
        fails(libc::EFAULT, || {
            libc::nanosleep(forbidden(), ptr::null_mut()).into()
        });
        fails(libc::EFAULT, || {
            libc::nanosleep(ptr::null(), ptr::null_mut()).into()
        });
        let sleep = move || libc::clock_nanosleep(monotonic, 0, nowhere(), ptr::null_mut());
        assert_eq!(on_virtual(sleep), libc::EFAULT);
        assert_eq!(sleep(), libc::EFAULT);
    }
}

#[watched]
fn sets_lists_and_times_of_polls() {
    let none = ptr::null_mut;
    // SAFETY: the kernel checks the pointers.
    unsafe {
        fails(libc::EFAULT, move || {
            libc::select(1, nowhere(), none(), none(), ptr::null_mut()).into()
        });
        fails_on_virtual(libc::EFAULT, move || {
            libc::select(0, none(), none(), none(), nowhere()).into()
        });
        fails_on_virtual(libc::EFAULT, move || {
            libc::pselect(0, none(), none(), none(), nowhere(), ptr::null()).into()
        });
        fails(libc::EFAULT, || libc::poll(nowhere(), 1, 1000).into());
        fails_on_virtual(libc::EFAULT, || {
            libc::ppoll(ptr::null_mut(), 0, nowhere(), ptr::null()).into()
        });
        let epoll = sys::own(libc::epoll_create1(0)).unwrap();
        let fd = epoll.as_raw_fd();
        fails(libc::EFAULT, move || {
            let number = libc::SYS_epoll_pwait2;
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            libc::syscall(number, fd, &raw mut event, 1, NOWHERE, 0, 8)
        });
    }
}

#[watched]
fn times_that_are_none() {
    const BAD: libc::timespec = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000_000,
    };
    let none = ptr::null_mut;
    // SAFETY: the kernel checks the pointers.
    unsafe {
        fails(libc::EINVAL, || {
            libc::ppoll(ptr::null_mut(), 0, &BAD, ptr::null()).into()
        });
        fails(libc::EINVAL, move || {
            libc::pselect(0, none(), none(), none(), &BAD, ptr::null()).into()
        });
        for (tv_sec, tv_usec) in [(-1, 0), (0, -1)] {
            fails(libc::EINVAL, move || {
                let mut time = libc::timeval { tv_sec, tv_usec };
                libc::select(0, none(), none(), none(), &mut time).into()
            });
        }
        fails(libc::EINVAL, || {
            libc::nanosleep(&BAD, ptr::null_mut()).into()
        });
        let epoll = sys::own(libc::epoll_create1(0)).unwrap();
        let fd = epoll.as_raw_fd();
        fails(libc::EINVAL, move || {
            let number = libc::SYS_epoll_pwait2;
            let mut event = libc::epoll_event { events: 0, u64: 0 };
            libc::syscall(number, fd, &raw mut event, 1, &BAD, 0, 8)
        });
    }
}

fn futex(word: usize, operation: c_int, value: u32, timeout: usize, second: usize) -> c_long {
    let operation = operation | libc::FUTEX_PRIVATE_FLAG;
    // SAFETY: the kernel checks the pointers.
    unsafe { libc::syscall(libc::SYS_futex, word, operation, value, timeout, second, 0) }
}

#[watched]
fn words_and_times_of_futexes() {
    static WORD: u32 = 0;
    let word = (&raw const WORD).addr();
    for address in [0, NOWHERE, forbidden::<u32>().addr()] {
        fails(libc::EFAULT, move || {
            futex(address, libc::FUTEX_WAIT, 0, 0, 0)
        });
        fails(libc::EFAULT, move || {
            futex(address, libc::FUTEX_CMP_REQUEUE, 0, 0, word)
        });
    }
    fails(libc::EFAULT, move || {
        futex(word, libc::FUTEX_WAIT, 0, NOWHERE, 0)
    });
    fails(libc::EAGAIN, move || futex(word, libc::FUTEX_WAIT, 1, 0, 0));
}

#[watched]
fn paths_and_what_is_to_be_filled_in() {
    // SAFETY: the kernel checks the pointers.
    unsafe {
        fails(libc::EFAULT, || {
            let mut stat: libc::stat = std::mem::zeroed();
            libc::fstatat(0, nowhere(), &mut stat, libc::AT_EMPTY_PATH).into()
        });
        fails(libc::EFAULT, || libc::pipe(nowhere()).into());
        fails(libc::EFAULT, || {
            libc::ioctl(0, libc::FIONBIO, NOWHERE).into()
        });
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let pid = child.id();
        fails(libc::EFAULT, move || {
            libc::waitid(libc::P_PID, pid, nowhere(), libc::WEXITED | libc::WNOWAIT).into()
        });
        child.wait().unwrap();
    }
}

static FAULTS: AtomicUsize = AtomicUsize::new(0);

extern "C" fn count_faults(_signal: c_int) {
    FAULTS.fetch_add(1, SeqCst);
    // SAFETY: always allowed. Without this the fault would come again and again.
    unsafe { libc::_exit(3) };
}

/// A handler installed after the runtime's, which passes nothing on.
#[watched]
fn a_handler_of_the_programs_does_not_see_them() {
    child::isolated(&[], || {
        on_virtual(|| ());
        for signal in [libc::SIGSEGV, libc::SIGBUS] {
            sys::on_signal(signal, libc::SA_ONSTACK, count_faults);
        }
        // SAFETY: the runtime looks at the address.
        fails(libc::EFAULT, || unsafe {
            libc::nanosleep(forbidden(), ptr::null_mut()) as i64
        });
        assert_eq!(FAULTS.load(SeqCst), 0);
    });
}
