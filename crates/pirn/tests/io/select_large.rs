//! `select` with sets, counts and timeouts that are larger than usual.

use std::io::{self, Write};
use std::os::fd::{AsRawFd, RawFd};
use std::time::Duration;

use crate::common::{sys, watched};
use pirn::thread;

/// Returns a set of any number of descriptors.
fn large_set(fds: &[RawFd]) -> Vec<u64> {
    let mut words = vec![0; 64];
    for &fd in fds {
        words[fd as usize / 64] |= 1 << (fd % 64);
    }
    words
}

fn no_time_limit() -> *mut libc::timeval {
    std::ptr::null_mut()
}

/// Calls `select` for reading, on the descriptors below `count`.
fn select_large(count: RawFd, read: &mut [u64], time: *mut libc::timeval) -> io::Result<i32> {
    let none = std::ptr::null_mut;
    // SAFETY: the set has more than `count` bits, or the kernel looks only at those it has.
    sys::check(unsafe { libc::select(count, read.as_mut_ptr().cast(), none(), none(), time) })
}

#[watched(alone)]
fn sets_may_be_larger_than_fd_set() {
    const HIGH: RawFd = 2000;
    sys::raise_file_limit();
    let (low, _silent) = io::pipe().unwrap();
    let (reader, mut writer) = io::pipe().unwrap();
    // SAFETY: no pointers; the number is free, or the call fails.
    let high = unsafe { libc::fcntl(reader.as_raw_fd(), libc::F_DUPFD_CLOEXEC, HIGH) };
    let high = sys::own(high).unwrap();
    let (low, number) = (low.as_raw_fd(), high.as_raw_fd());
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut set = large_set(&[low, number]);
            let count = select_large(number + 1, &mut set, no_time_limit());
            assert_eq!(count.unwrap(), 1);
            assert_eq!(set, large_set(&[number]));
        });
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            writer.write_all(b"x").unwrap();
        });
    });
}

/// As programs do that pass the greatest number of descriptors and a set of the usual size.
#[watched(alone)]
fn a_count_beyond_the_set_is_not_followed() {
    let (reader, mut writer) = io::pipe().unwrap();
    let number = reader.as_raw_fd();
    thread::scope(|scope| {
        scope.spawn(|| {
            const FLAGS: libc::c_int = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
            const PROT: libc::c_int = libc::PROT_READ | libc::PROT_WRITE;
            // A page at the end of mapped memory: the next one must not be touched.
            // SAFETY: a fresh mapping, of which the first page is used.
            let page = unsafe {
                let size = sys::page_size();
                let pages = libc::mmap(std::ptr::null_mut(), 2 * size, PROT, FLAGS, -1, 0);
                assert_ne!(pages, libc::MAP_FAILED);
                libc::mprotect(pages.byte_add(size), size, libc::PROT_NONE);
                std::slice::from_raw_parts_mut(pages.cast::<u64>(), size / 8)
            };
            let set = page.last_chunk_mut::<128>().unwrap();
            set[..64].copy_from_slice(&large_set(&[number]));
            let result = select_large(1 << 20, set, no_time_limit());
            // The kernel reads as far as this process has room for descriptors.
            match result {
                Ok(count) => {
                    assert_eq!((count, set[number as usize / 64]), (1, 1 << (number % 64)))
                }
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EFAULT)),
            }
        });
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            writer.write_all(b"x").unwrap();
        });
    });
}

#[watched(alone)]
fn a_timeout_of_centuries_does_not_pass() {
    let (reader, mut writer) = io::pipe().unwrap();
    let number = reader.as_raw_fd();
    thread::scope(|scope| {
        scope.spawn(|| {
            for tv_sec in [18_446_744_074, i64::MAX] {
                let mut set = large_set(&[number]);
                let mut time = libc::timeval { tv_sec, tv_usec: 0 };
                let count = select_large(number + 1, &mut set, &mut time).unwrap();
                assert_eq!((count, set), (1, large_set(&[number])));
            }
        });
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(5));
            writer.write_all(b"x").unwrap();
        });
    });
}

#[watched(alone)]
fn an_interrupt_leaves_the_sets_as_they_were() {
    let (reader, _writer) = io::pipe().unwrap();
    let number = reader.as_raw_fd();
    let waiting = thread::spawn(move || {
        let mut set = large_set(&[number]);
        let error = select_large(number + 1, &mut set, no_time_limit()).unwrap_err();
        assert!(thread::is_interrupt(&error), "{error}");
        assert_eq!(set, large_set(&[number]));
    });
    thread::sleep(Duration::from_millis(5));
    waiting.thread().interrupt();
    waiting.join().unwrap();
}
