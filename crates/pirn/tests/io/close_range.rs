//! Closing many descriptors at once, and the runtime's own descriptors, which the program must not
//! close.

use std::fs;
use std::io::{self, Read, Write};
use std::os::fd::{AsRawFd, IntoRawFd, RawFd};
use std::time::Duration;

use crate::common::memory::resident;
use crate::common::{block_then, child, most_carriers, on_virtual, sys, watched};
use pirn::thread;

fn close_range(first: RawFd, last: u32) {
    // SAFETY: the callers own what is open there.
    sys::check(unsafe { libc::close_range(first as u32, last, 0) }).unwrap();
}

/// Returns the runtime's own descriptors.
fn descriptors_of_the_runtime() -> Vec<RawFd> {
    let all = fs::read_dir("/proc/self/fd").unwrap();
    all.map(|entry| entry.unwrap().path())
        .filter(|path| {
            let to = fs::read_link(path).unwrap_or_default();
            to.ends_with("anon_inode:[eventpoll]") || to.ends_with("anon_inode:[eventfd]")
        })
        .map(|path| path.file_name().unwrap().to_str().unwrap().parse())
        .collect::<Result<_, _>>()
        .unwrap()
}

#[watched]
fn a_range_without_end_takes_no_memory() {
    child::isolated(&[], || {
        on_virtual(|| ());
        let before = resident();
        close_range(1000, u32::MAX);
        assert!(resident() - before < 4 << 20);
    });
}

#[watched]
fn those_that_wait_in_a_range_wake() {
    let readers: Vec<_> = (0..10 * most_carriers())
        .map(|_| io::pipe().unwrap())
        .collect();
    let (readers, _writers): (Vec<_>, Vec<_>) = readers.into_iter().unzip();
    let numbers: Vec<_> = readers.into_iter().map(IntoRawFd::into_raw_fd).collect();
    block_then(
        numbers.len(),
        |i| {
            let error = sys::read(numbers[i], &mut [0]).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        },
        || {
            thread::sleep(Duration::from_millis(1));
            for &number in &numbers {
                close_range(number, number as u32);
            }
        },
    );
}

/// Waits until a number is closed, gives it to another file at once, and reads from that.
fn reopen_and_read(number: RawFd, file: &impl AsRawFd) -> io::Result<usize> {
    let is_open = || {
        sys::inline(
            libc::SYS_fcntl,
            number as usize,
            libc::F_GETFD as usize,
            0,
            0,
            0,
        )
    };
    while is_open() >= 0 {}
    sys::dup2(file.as_raw_fd(), number)?;
    sys::read(number, &mut [0])
}

#[watched]
fn a_number_that_is_opened_again_meanwhile_stays_open() {
    const LAST: RawFd = 1000;
    child::isolated(&[("PIRN_PARALLELISM", "1")], || {
        // Each number has been used, so that it takes a while to look after all.
        (LAST - 800..LAST).for_each(|number| sys::dup2(0, number).unwrap());
        for _ in 0..300 {
            let (reader, mut writer) = io::pipe().unwrap();
            sys::dup2(0, LAST).unwrap();
            thread::scope(|scope| {
                let read = scope.spawn(|| reopen_and_read(LAST, &reader));
                close_range(LAST - 800, LAST as u32);
                writer.write_all(b"x").unwrap();
                assert_eq!(read.join().unwrap().unwrap(), 1);
            });
        }
    });
}

#[watched]
fn the_runtime_outlives_a_program_that_closes_all() {
    child::isolated(&[], || {
        on_virtual(|| {
            let ours = descriptors_of_the_runtime();
            assert_eq!(ours.len(), 2);
            close_range(3, u32::MAX);
            for number in 3..100 {
                assert_eq!(
                    sys::close(number).unwrap_err().raw_os_error(),
                    Some(libc::EBADF)
                );
            }
            for number in &ours {
                let error = sys::dup2(0, *number).unwrap_err();
                assert_eq!(error.raw_os_error(), Some(libc::EBUSY));
            }
            assert_eq!(descriptors_of_the_runtime(), ours);
            thread::sleep(Duration::from_millis(1));
            let (mut reader, mut writer) = io::pipe().unwrap();
            assert!(!ours.contains(&reader.as_raw_fd()));
            let read = thread::spawn(move || reader.read(&mut [0]).unwrap());
            thread::yield_now();
            writer.write_all(b"x").unwrap();
            assert_eq!(read.join().unwrap(), 1);
        });
    });
}
