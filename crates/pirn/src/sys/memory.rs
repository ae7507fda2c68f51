//! Memory from the kernel.

use super::{SysResult, call};

/// Maps memory that nobody else has, readable and writable, of zeros; returns its address.
/// `flags` are further ones of `MAP_…`.
pub(crate) fn map(bytes: usize, flags: i32) -> SysResult {
    const PROT: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new private mapping, at an address of the kernel's choice.
    unsafe { call!(libc::SYS_mmap, 0, bytes, PROT, flags, -1isize, 0) }
}
