//! The newer system calls for futexes: `futex_waitv`, and `futex_wait`, `futex_wake` and
//! `futex_requeue`, which mean what operations of `futex` do.
//!
//! `futex_waitv` waits for one of several words. A thread can be in one queue of the
//! [parking lot](super::parking_lot) only. So the wait is the kernel's, on a platform thread of its
//! own where a virtual thread asks for it, and announced for each word: otherwise a wake would not
//! look into the kernel.

use super::futex::futex;
use super::futex_op;
use super::{offload, parking_lot};
use crate::arch;
use crate::sys::{self, SysResult};
use crate::vthread::awaited::Awaited;
use libc::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_PRIVATE_FLAG,
    FUTEX_WAIT_BITSET, FUTEX_WAKE_BITSET,
};

/// The numbers of the system calls, which `libc` does not have for every C library.
pub const SYS_FUTEX_WAITV: i64 = 449;
pub const SYS_FUTEX_WAKE: i64 = 454;
pub(crate) const SYS_FUTEX_WAIT: i64 = 455;
pub const SYS_FUTEX_REQUEUE: i64 = 456;
/// The flags for words of 32 bits; and, as in `futex`, for those of one process.
const FUTEX2_SIZE_U32: usize = 2;
const FUTEX2_PRIVATE: usize = FUTEX_PRIVATE_FLAG as usize;
/// The most words of a call (`FUTEX_WAITV_MAX`).
const MOST: usize = 128;
/// The size of the kernel's `struct futex_waitv`, in which the address is the second of 3 words.
const ENTRY: usize = 24;

/// Performs the operation of `futex` that such a call of the kernel's stands for. Returns `None`
/// if there is none, as for flags that `futex` does not know.
///
/// # Safety
/// As for the system call.
pub unsafe fn as_futex(number: i64, args: [usize; 6]) -> Option<SysResult> {
    let [word, second, third, flags, timeout, clock] = args;
    let known = |flags| flags & !FUTEX2_PRIVATE == FUTEX2_SIZE_U32;
    let operation = |operation: i32, flags| operation as usize | flags & FUTEX2_PRIVATE;
    let call = match number {
        SYS_FUTEX_WAKE if known(flags) => {
            let operation = operation(FUTEX_WAKE_BITSET, flags);
            [word, operation, third, 0, 0, second]
        }
        SYS_FUTEX_WAIT
            if known(flags) && matches!(clock as i32, CLOCK_REALTIME | CLOCK_MONOTONIC) =>
        {
            let clock = match clock as i32 {
                CLOCK_REALTIME => FUTEX_CLOCK_REALTIME,
                _ => 0,
            };
            let operation = operation(FUTEX_WAIT_BITSET | clock, flags);
            [word, operation, second, timeout, 0, third]
        }
        SYS_FUTEX_REQUEUE if second == 0 => {
            let entry =
                |i: usize| sys::fetch_u64(word.wrapping_add(i * 8)).map(|value| value as usize);
            let [Ok(value), Ok(from), Ok(flags), Ok(to), Ok(flags_of_to)] =
                [0, 1, 2, 4, 5].map(entry)
            else {
                return None;
            };
            if !known(flags) || flags != flags_of_to {
                return None;
            }
            let operation = operation(FUTEX_CMP_REQUEUE, flags);
            [from, operation, third, args[3], to, value]
        }
        _ => return None,
    };
    // SAFETY: the caller's contract.
    Some(unsafe { futex(call, futex_op::call) })
}

/// Makes the system call `futex_waitv`.
///
/// # Safety
/// As for the system call.
pub unsafe fn wait_many(args: [usize; 6]) -> SysResult {
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
