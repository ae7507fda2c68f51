//! Files that are partly in the page cache: reads and writes are as complete as the kernel's own.

use std::fs::{self, File, OpenOptions};
use std::io::{IoSlice, IoSliceMut, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::ptr;

use crate::common::{TempDir, child, on_virtual, pattern, skip, sys, watched};

const HALF: usize = 1 << 20;

/// Returns a file of two halves, of which the second is not in the page cache. `None` if the file
/// system keeps all files in memory.
fn half_cached(folder: &TempDir, flags: i32) -> Option<File> {
    let path = folder.join("file");
    fs::write(&path, pattern(2 * HALF)).unwrap();
    let mut options = OpenOptions::new();
    let file = options
        .read(true)
        .write(true)
        .custom_flags(flags)
        .open(path);
    let file = file.unwrap();
    file.sync_all().unwrap();
    drop_second_half(&file);
    if is_in_memory(&file, HALF as i64) {
        skip("this file system keeps its files in memory");
        return None;
    }
    Some(file)
}

/// Drops the whole file from the cache, and reads the first half again: one page of the cache may
/// be as large as the file.
fn drop_second_half(file: &File) {
    let fd = file.as_raw_fd();
    // SAFETY: no pointers. Without readahead, which would bring back more.
    unsafe {
        libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_RANDOM);
        libc::posix_fadvise(fd, 0, 0, libc::POSIX_FADV_DONTNEED);
    }
    file.read_exact_at(&mut vec![0; HALF], 0).unwrap();
}

/// Returns whether the page cache has the page at `offset`. Unlike a read, this does not fetch it.
fn is_in_memory(file: &File, offset: i64) -> bool {
    let size = sys::page_size();
    let mut resident = 0;
    // SAFETY: a mapping of one page, which the test never touches, and a byte for it.
    unsafe {
        let fd = file.as_raw_fd();
        let page = libc::mmap(
            ptr::null_mut(),
            size,
            libc::PROT_READ,
            libc::MAP_SHARED,
            fd,
            offset,
        );
        assert_ne!(page, libc::MAP_FAILED);
        assert_eq!(libc::mincore(page, size, &mut resident), 0);
        libc::munmap(page, size);
    }
    resident & 1 != 0
}

/// Lets `read` fill a buffer from a half-cached file, on a virtual thread.
fn whole(flags: i32, read: impl FnOnce(&mut File, &mut [u8]) -> usize + Send + 'static) {
    let folder = TempDir::new("half");
    let Some(mut file) = half_cached(&folder, flags) else {
        return;
    };
    on_virtual(move || {
        let mut buffer = vec![0; 2 * HALF];
        assert_eq!(read(&mut file, &mut buffer), 2 * HALF);
        assert!(buffer == pattern(2 * HALF), "damaged");
    });
}

/// Returns two uneven parts of a buffer.
fn parts(buffer: &mut [u8]) -> [IoSliceMut<'_>; 2] {
    let (left, right) = buffer.split_at_mut(HALF + 12_345);
    [left, right].map(IoSliceMut::new)
}

#[watched]
fn read_is_whole() {
    whole(0, |file, buffer| file.read(buffer).unwrap());
}

#[watched]
fn readv_is_whole() {
    whole(0, |file, buffer| {
        file.read_vectored(&mut parts(buffer)).unwrap()
    });
}

#[watched]
fn pread_is_whole() {
    whole(0, |file, buffer| file.read_at(buffer, 0).unwrap());
}

#[watched]
fn preadv_is_whole() {
    whole(0, |file, buffer| {
        let parts = parts(buffer);
        // SAFETY: `IoSliceMut` has the layout of `iovec`.
        let count = unsafe { libc::preadv(file.as_raw_fd(), parts.as_ptr().cast(), 2, 0) };
        count as usize
    });
}

#[watched]
fn a_file_that_was_opened_not_to_block_does_so_all_the_same() {
    whole(libc::O_NONBLOCK, |file, buffer| file.read(buffer).unwrap());
    whole(libc::O_NONBLOCK, |file, buffer| {
        let (left, right) = buffer.split_at_mut(HALF);
        // From the missing half on: none of it is in memory.
        file.seek(SeekFrom::Start(HALF as u64)).unwrap();
        let count = file.read(right).unwrap();
        file.seek(SeekFrom::Start(0)).unwrap();
        count + file.read(left).unwrap()
    });
}

#[watched]
fn writes_over_a_part_that_is_missing_are_whole() {
    let folder = TempDir::new("half");
    let Some(mut file) = half_cached(&folder, 0) else {
        return;
    };
    on_virtual(move || {
        let new: Vec<u8> = pattern(2 * HALF).iter().map(|byte| !byte).collect();
        assert_eq!(
            file.write_at(&new[..2 * HALF - 100], 50).unwrap(),
            2 * HALF - 100
        );
        file.sync_all().unwrap();
        drop_second_half(&file);
        let (left, right) = new.split_at(77);
        let count = file.write_vectored(&[left, right].map(IoSlice::new));
        assert_eq!(count.unwrap(), 2 * HALF);
    });
}

#[watched]
fn a_read_ends_at_the_end_of_the_file() {
    child::isolated(&[], || {
        let folder = TempDir::new("end");
        let path = folder.join("file");
        fs::write(&path, pattern(10_000)).unwrap();
        let mut file = File::open(&path).unwrap();
        if !reads_without_waiting(&file) {
            return skip("this file system cannot read without waiting, so the pool reads");
        }
        on_virtual(move || {
            let mut buffer = vec![0; 20_000];
            assert_eq!(file.read(&mut buffer).unwrap(), 10_000);
            assert_eq!(file.read(&mut buffer).unwrap(), 0);
            assert_eq!(file.read_at(&mut buffer, 5000).unwrap(), 5000);
            assert_eq!(file.read_at(&mut buffer, 10_000).unwrap(), 0);
        });
        assert_pool_unused();
    });
}

/// Returns whether the file system knows `RWF_NOWAIT`: tmpfs of Linux 5.10 does not.
fn reads_without_waiting(file: &File) -> bool {
    let mut byte = 0u8;
    let piece = libc::iovec {
        iov_base: (&raw mut byte).cast(),
        iov_len: 1,
    };
    // SAFETY: the one piece is writable.
    unsafe { libc::preadv2(file.as_raw_fd(), &piece, 1, 0, libc::RWF_NOWAIT) == 1 }
}

/// Asserts that no call has taken a thread of the pool.
fn assert_pool_unused() {
    for task in fs::read_dir("/proc/self/task").unwrap() {
        let name = fs::read_to_string(task.unwrap().path().join("comm")).unwrap();
        assert_ne!(name.trim_end(), "pirn-blocking");
    }
}

/// A second read could wait for data yet to come, as one of `/proc/kmsg` does.
#[watched(alone)]
fn a_file_that_is_made_when_it_is_read_is_read_once() {
    let size = sys::page_size();
    // Every other page of a mapping is another line of the file.
    // SAFETY: a fresh mapping, which no other code touches.
    unsafe {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let pages = libc::mmap(ptr::null_mut(), 512 * size, libc::PROT_NONE, flags, -1, 0);
        assert_ne!(pages, libc::MAP_FAILED);
        for i in (0..512).step_by(2) {
            let page = pages.byte_add(i * size);
            assert_eq!(libc::mprotect(page, size, libc::PROT_READ), 0);
        }
    }
    // The kernel makes a page of it at a time.
    let read = || {
        let mut file = File::open("/proc/self/maps").unwrap();
        file.read(&mut vec![0; 1 << 20]).unwrap()
    };
    assert!((1..=size).contains(&read()));
    assert!((1..=size).contains(&on_virtual(read)));
}

#[watched]
fn what_is_no_file_gives_what_there_is() {
    on_virtual(|| {
        let (mut reader, mut writer) = std::io::pipe().unwrap();
        writer.write_all(b"half").unwrap();
        assert_eq!(reader.read(&mut [0; 8]).unwrap(), 4);
        let mut parts = [[0; 3], [0; 3]];
        let [left, right] = &mut parts;
        writer.write_all(b"half").unwrap();
        let mut slices = [left, right].map(|part| IoSliceMut::new(part));
        assert_eq!(reader.read_vectored(&mut slices).unwrap(), 4);
        let timer = fs::read("/proc/self/status").unwrap();
        assert!(timer.starts_with(b"Name:"));
    });
}
