//! Mapping memory, barriers in other threads, and reading and writing the program's memory as the
//! kernel does: an unmapped address is `EFAULT`.
//!
//! The functions `fetch_…` and `store_…` are for code that replaces a system call on a virtual
//! thread, or reads one's stack. The runtime has been started, so its fault handler is in place.

use super::{Errno, SysResult, call, nanos};
use crate::arch::{self, FetchedWord};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Bytes of the smallest page that a processor has.
pub(crate) const SMALLEST_PAGE: usize = 4096;

/// Whether tests can pretend that pages are larger than they are.
const PRETENDS: bool = cfg!(test);

/// Returns the bytes of a page.
#[inline(always)]
pub fn page_size() -> usize {
    match arch::PAGE_SIZE {
        Some(size) if !PRETENDS => size,
        _ => found_page_size(),
    }
}

#[inline]
fn found_page_size() -> usize {
    static SIZE: AtomicUsize = AtomicUsize::new(0);
    // Relaxed, twice: a number, and the same whichever thread finds it.
    match SIZE.load(Relaxed) {
        0 => {
            let size = find_page_size();
            SIZE.store(size, Relaxed);
            size
        }
        size => size,
    }
}

/// Asks the kernel. `PIRN_TEST_PAGE_SIZE` in the environment pretends that pages are larger: a
/// multiple of what they are.
#[cold]
fn find_page_size() -> usize {
    // SAFETY: getauxval has no preconditions.
    let size = unsafe { libc::getauxval(libc::AT_PAGESZ) } as usize;
    let pretended = PRETENDS.then(|| crate::environment::variable("PIRN_TEST_PAGE_SIZE"));
    let pretended = pretended
        .flatten()
        .and_then(|text| text.to_str()?.parse().ok());
    pretended.unwrap_or(size)
}

/// Maps private memory, readable, writable and zeroed, and returns its address. `flags` are
/// additional `MAP_…` flags.
pub fn map(bytes: usize, flags: i32) -> SysResult {
    const PROT: i32 = libc::PROT_READ | libc::PROT_WRITE;
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
    // SAFETY: a new private mapping, at an address of the kernel's choice.
    unsafe { call!(libc::SYS_mmap, 0, bytes, PROT, flags, -1isize, 0) }
}

/// Executes a full memory barrier in every running thread of the process before it returns; a
/// thread that does not run executes one before it does.
///
/// # Errors
/// The kernel has no `membarrier(2)`, or a filter of system calls forbids it.
pub fn barrier_in_every_thread() -> SysResult {
    const PRIVATE_EXPEDITED: i32 = 1 << 3; // include/uapi/linux/membarrier.h
    const REGISTER_PRIVATE_EXPEDITED: i32 = 1 << 4;
    // SAFETY: no pointers.
    let membarrier = |command: i32| unsafe { call!(libc::SYS_membarrier, command, 0, 0) };
    match membarrier(PRIVATE_EXPEDITED) {
        Err(Errno(libc::EPERM)) => {
            membarrier(REGISTER_PRIVATE_EXPEDITED)?;
            membarrier(PRIVATE_EXPEDITED)
        }
        result => result,
    }
}

fn checked(fetched: FetchedWord) -> Result<u64, Errno> {
    match fetched.failed {
        0 => Ok(fetched.value),
        _ => Err(Errno(libc::EFAULT)),
    }
}

/// Reads a byte.
pub fn fetch_u8(address: usize) -> Result<u8, Errno> {
    // SAFETY: see the module's documentation.
    checked(unsafe { arch::fetch_u8(address) }).map(|value| value as u8)
}

/// Reads four bytes, atomically if the address is aligned. The load is Relaxed.
#[inline]
pub fn fetch_u32(address: usize) -> Result<u32, Errno> {
    // SAFETY: see the module's documentation.
    checked(unsafe { arch::fetch_u32(address) }).map(|value| value as u32)
}

/// Reads eight bytes.
pub fn fetch_u64(address: usize) -> Result<u64, Errno> {
    // SAFETY: see the module's documentation.
    checked(unsafe { arch::fetch_u64(address) })
}

/// Reads the two words of a time: `timespec` or `timeval`.
pub fn fetch_time(address: usize) -> Result<[i64; 2], Errno> {
    let seconds = fetch_u64(address)? as i64;
    Ok([seconds, fetch_u64(address.wrapping_add(8))? as i64])
}

/// Writes eight bytes.
///
/// # Safety
/// The caller may write there.
pub unsafe fn store_u64(address: usize, value: u64) -> Result<(), Errno> {
    // SAFETY: see the module's documentation; the caller's contract.
    checked(unsafe { arch::store_u64(address, value) }).map(|_| ())
}

/// Writes a time to a `timespec`, if that can be written.
///
/// # Safety
/// The caller may write there.
pub unsafe fn store_timespec(address: *mut libc::timespec, time: libc::timespec) {
    let words = [time.tv_sec as u64, time.tv_nsec as u64];
    for (address, word) in (address.addr()..).step_by(8).zip(words) {
        // SAFETY: the caller's contract.
        let _ = unsafe { store_u64(address, word) };
    }
}

/// Reads a time from a `timespec`. Fails with `EINVAL` if it is not a valid time.
pub fn fetch_timespec(address: *const libc::timespec) -> Result<libc::timespec, Errno> {
    let [tv_sec, tv_nsec] = fetch_time(address.addr())?;
    if tv_sec < 0 || !(0..1_000_000_000).contains(&tv_nsec) {
        return Err(Errno(libc::EINVAL));
    }
    Ok(libc::timespec { tv_sec, tv_nsec })
}

/// Reads a timeout from a `timespec`, in nanoseconds. Returns `None` for a null pointer.
#[inline]
pub fn fetch_timeout(address: *const libc::timespec) -> Result<Option<u64>, Errno> {
    match address.is_null() {
        true => Ok(None),
        false => fetch_timespec(address).map(|ts| Some(nanos(&ts))),
    }
}
