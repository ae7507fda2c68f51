//! Memory mappings.

use super::{SysResult, call};

/// Maps private memory, readable, writable and zeroed, and returns its address. `flags` are
/// additional `MAP_…` flags.
pub fn map(bytes: usize, flags: i32) -> SysResult {
    const PROT: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new private mapping, at an address of the kernel's choice.
    unsafe { call!(libc::SYS_mmap, 0, bytes, PROT, flags, -1isize, 0) }
}
