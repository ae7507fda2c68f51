//! `FUTEX_WAKE_OP`: it changes its second word, wakes waiters of the first, and, by the old value
//! of the second, waiters there.
//!
//! ```text
//!   31     28 27     24 23                12 11                 0
//!   +--------+---------+--------------------+--------------------+
//!   | op     | cmp     | oparg, signed      | cmparg, signed     |
//!   +--------+---------+--------------------+--------------------+
//! ```

use super::futex::futex;
use crate::arch;
use crate::runtime;
use crate::sys::{self, Errno, SysResult};
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{
    FUTEX_CLOCK_REALTIME, FUTEX_OP_ADD, FUTEX_OP_ANDN, FUTEX_OP_CMP_EQ, FUTEX_OP_CMP_GE,
    FUTEX_OP_CMP_GT, FUTEX_OP_CMP_LE, FUTEX_OP_CMP_LT, FUTEX_OP_CMP_NE, FUTEX_OP_OPARG_SHIFT,
    FUTEX_OP_OR, FUTEX_OP_SET, FUTEX_OP_XOR, FUTEX_PRIVATE_FLAG, FUTEX_WAKE, FUTEX_WAKE_OP,
};

/// Performs a private `FUTEX_WAKE_OP`; any other operation is the kernel's.
///
/// # Safety
/// As for the system call.
#[cold]
pub unsafe fn call(args: [usize; 6]) -> SysResult {
    let [first, operation, count, count_there, second, change] = args;
    let command = operation as i32 & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    // SAFETY: the caller's contract, here and below.
    unsafe {
        if command != FUTEX_WAKE_OP || !runtime::is_started() {
            return sys::check(arch::syscall(libc::SYS_futex, args));
        }
        let wake = |word, count| {
            let operation = (FUTEX_WAKE | FUTEX_PRIVATE_FLAG) as usize;
            futex([word, operation, count, 0, 0, 0], call)
        };
        let there = perform(change as u32, second)?;
        let woken = wake(first, count)?;
        Ok(woken + if there { wake(second, count_there)? } else { 0 })
    }
}

/// Performs an operation on the word at this address. Returns whether its waiters are to be woken.
///
/// # Errors
/// As the kernel's: `EINVAL`, `EFAULT`, `ENOSYS` for an operation that it does not know.
///
/// # Safety
/// If the address is that of a word that can be read, it may be written.
unsafe fn perform(operation: u32, word: usize) -> Result<bool, Errno> {
    if !word.is_multiple_of(4) {
        return Err(Errno(libc::EINVAL));
    }
    sys::fetch_u32(word)?;
    let signed = |twelve_bits: u32| ((twelve_bits << 20) as i32) >> 20;
    let (op, compare) = ((operation >> 28) as i32, (operation >> 24 & 15) as i32);
    let (mut argument, other) = (signed(operation >> 12), signed(operation));
    if op & FUTEX_OP_OPARG_SHIFT != 0 {
        argument = 1 << (argument & 31);
    }
    // SAFETY: aligned and readable, as checked above; the caller's contract.
    let word = unsafe { AtomicU32::from_ptr(word as *mut u32) };
    // SeqCst: as if the program had done it before a wake.
    let (order, value) = (Ordering::SeqCst, argument as u32);
    let before = match op & !FUTEX_OP_OPARG_SHIFT {
        FUTEX_OP_SET => word.swap(value, order),
        FUTEX_OP_ADD => word.fetch_add(value, order),
        FUTEX_OP_OR => word.fetch_or(value, order),
        FUTEX_OP_ANDN => word.fetch_and(!value, order),
        FUTEX_OP_XOR => word.fetch_xor(value, order),
        _ => return Err(Errno(libc::ENOSYS)),
    } as i32;
    match compare {
        FUTEX_OP_CMP_EQ => Ok(before == other),
        FUTEX_OP_CMP_NE => Ok(before != other),
        FUTEX_OP_CMP_LT => Ok(before < other),
        FUTEX_OP_CMP_LE => Ok(before <= other),
        FUTEX_OP_CMP_GT => Ok(before > other),
        FUTEX_OP_CMP_GE => Ok(before >= other),
        _ => Err(Errno(libc::ENOSYS)),
    }
}
