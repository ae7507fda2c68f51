//! The memory that this process has, according to the kernel.

use super::sys;
use std::{env, fs, ptr};

/// Returns whether the guards of stacks are markers, which take no mapping of their own (Linux
/// 6.13).
pub fn has_guard_markers() -> bool {
    const MADV_GUARD_INSTALL: i32 = 102; // asm-generic/mman-common.h
    const LENGTH: usize = 1 << 16; // of any page
    // SAFETY: a mapping that nothing else uses.
    let has = unsafe {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS;
        let place = libc::mmap(ptr::null_mut(), LENGTH, protection, flags, -1, 0);
        assert_ne!(place, libc::MAP_FAILED);
        let has = libc::madvise(place, LENGTH, MADV_GUARD_INSTALL) == 0;
        libc::munmap(place, LENGTH);
        has
    };
    has && env::var_os("PIRN_NO_GUARD_MARKERS").is_none()
}

/// Returns how many threads a test may have at once that wants this many. Without guard markers a
/// stack takes two of the 65,530 mappings that a process may have, and several tests run in it.
pub fn threads_of(wanted: usize) -> usize {
    super::fewer(match has_guard_markers() {
        true => wanted,
        false => wanted.min(5_000),
    })
}

/// Returns the resident memory in bytes.
pub fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = text.split_whitespace().nth(1).unwrap();
    pages.parse::<usize>().unwrap() * sys::page_size()
}
