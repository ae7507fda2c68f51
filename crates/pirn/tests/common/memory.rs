//! The memory that this process has, according to the kernel.

use super::sys;
use std::fs;

/// Returns the resident memory in bytes.
pub fn resident() -> usize {
    let text = fs::read_to_string("/proc/self/statm").unwrap();
    let pages = text.split_whitespace().nth(1).unwrap();
    pages.parse::<usize>().unwrap() * sys::page_size()
}
