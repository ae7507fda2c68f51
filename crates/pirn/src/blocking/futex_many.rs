//! Waiting for one of several futexes (`futex_waitv`).
//!
//! A thread can be in one queue of the [parking lot](super::parking_lot) only. So the wait is the
//! kernel's, on a platform thread of its own where a virtual thread asks for it, and announced for
//! each word: otherwise a wake would not look into the kernel.

use super::{offload, parking_lot};
use crate::arch;
use crate::sys::{self, SysResult};
use crate::vthread::awaited::Awaited;

/// The number of the system call, which `libc` does not have for every C library.
pub(crate) const SYS_FUTEX_WAITV: i64 = 449;
/// The most words of a call (`FUTEX_WAITV_MAX`).
const MOST: usize = 128;
/// The size of the kernel's `struct futex_waitv`, in which the address is the second of 3 words.
const ENTRY: usize = 24;

/// Makes the system call.
///
/// # Safety
/// As for the system call.
pub(crate) unsafe fn wait_many(args: [usize; 6]) -> SysResult {
    let [entries, count, ..] = args;
    // SAFETY: the caller's contract.
    let kernel = || unsafe { sys::check(arch::syscall(SYS_FUTEX_WAITV, args)) };
    let mut words = [0; MOST];
    let Some(words) = words.get_mut(..count) else {
        return kernel(); // It refuses this.
    };
    for (i, word) in words.iter_mut().enumerate() {
        match sys::fetch_u64(entries.wrapping_add(i * ENTRY + 8)) {
            Ok(address) => *word = address as usize,
            Err(_) => return kernel(), // As above.
        }
    }
    offload::dedicated(Awaited::call(c"futex_waitv"), || announced(words, &kernel))
}

/// Calls `kernel` while it is announced that the calling platform thread waits for these words.
fn announced(words: &[usize], kernel: &dyn Fn() -> SysResult) -> SysResult {
    match words.split_first() {
        None => kernel(),
        Some((&word, others)) => parking_lot::in_kernel(word, || announced(others, kernel)),
    }
}
