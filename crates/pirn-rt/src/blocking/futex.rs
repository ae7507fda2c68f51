//! Futexes, for both kinds of threads.
//!
//! A virtual thread that waits for a futex word waits in the [`parking_lot`](super::parking_lot). A
//! platform thread waits in the kernel, and counts itself in the lot. A wake serves the virtual
//! waiters first. It calls the kernel only if it has woken fewer threads than asked for and a
//! platform thread may be waiting.
//!
//! That holds for private futexes (all of `std`'s, `parking_lot`'s and `crossbeam`'s). A futex
//! without `FUTEX_PRIVATE_FLAG` may be shared with other processes, even through another mapping:
//! only the kernel knows the waiters. There a virtual thread waits through a platform thread of its
//! own.

use crate::arch;
use crate::blocking::parking_lot::{self, Parked, hand_over};
use crate::blocking::pool;
use crate::sched::simulation::{self, Fault, Point};
use crate::sched::{runtime, safepoint};
use crate::sys::{self, Errno, SysResult};
use crate::time::Deadline;
use crate::vthread;
use crate::vthread::wait_reason::{Kind, WaitReason};
use crate::vthread::wait_word::Interruptible;
use core::sync::atomic::{AtomicU32, Ordering, fence};
use libc::{
    CLOCK_MONOTONIC, CLOCK_REALTIME, FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_OP_ADD,
    FUTEX_OP_ANDN, FUTEX_OP_CMP_EQ, FUTEX_OP_CMP_GE, FUTEX_OP_CMP_GT, FUTEX_OP_CMP_LE,
    FUTEX_OP_CMP_LT, FUTEX_OP_CMP_NE, FUTEX_OP_OPARG_SHIFT, FUTEX_OP_OR, FUTEX_OP_SET,
    FUTEX_OP_XOR, FUTEX_PRIVATE_FLAG, FUTEX_REQUEUE, FUTEX_WAIT, FUTEX_WAIT_BITSET, FUTEX_WAKE,
    FUTEX_WAKE_BITSET, FUTEX_WAKE_OP,
};

const EVERY_BIT: u32 = u32::MAX;

/// A function for further operations.
pub(crate) type Rarely = unsafe fn([usize; 6]) -> SysResult;

/// Performs the `futex` system call, with the arguments of `syscall(2)`. `rarely` performs the
/// operations that are not here.
///
/// # Safety
/// As for the system call.
pub unsafe fn futex(args: [usize; 6], rarely: Rarely) -> SysResult {
    simulation::point(Point::Futex);
    let operation = args[1] as i32;
    let private = operation & FUTEX_PRIVATE_FLAG != 0;
    let command = operation & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    // SAFETY: passed on.
    let kernel = |args: [usize; 6]| unsafe { sys::check(arch::syscall(libc::SYS_futex, args)) };
    if !private {
        let waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
        return if waits && vthread::parkable().is_some() {
            pool::dedicated(WaitReason::at(Kind::Futex, args[0]), || kernel(args))
        } else {
            kernel(args)
        };
    }
    let [word, _, value, fourth, second, last] = args;
    let value = value as u32 as usize; // an `int`: the upper half of its register is undefined
    match command {
        FUTEX_WAIT | FUTEX_WAIT_BITSET => {
            // SAFETY: the caller's contract.
            unsafe { wait_for(args, |word| WaitReason::at(Kind::Futex, word)) }
        }
        FUTEX_WAKE => Ok(wake(word, value, EVERY_BIT, kernel, args)),
        FUTEX_WAKE_BITSET if last as u32 == 0 => Err(Errno(libc::EINVAL)),
        FUTEX_WAKE_BITSET => Ok(wake(word, value, last as u32, kernel, args)),
        FUTEX_REQUEUE | FUTEX_CMP_REQUEUE => {
            let compare = (command == FUTEX_CMP_REQUEUE).then_some(last as u32);
            requeue(
                word,
                value,
                second,
                fourth as u32 as usize,
                compare,
                kernel,
                args,
            )
        }
        // SAFETY: the caller's contract.
        _ => unsafe { rarely(args) },
    }
}

/// Performs a private `FUTEX_WAIT` or `FUTEX_WAIT_BITSET`. `reason` returns what to say about a
/// wait for the word.
///
/// # Safety
/// As for the system call.
#[inline]
pub unsafe fn wait_for(args: [usize; 6], reason: impl FnOnce(usize) -> WaitReason) -> SysResult {
    let [word, operation, value, timeout, _, last] = args;
    if vthread::parkable().is_none() {
        // SAFETY: the caller's contract.
        let kernel = || unsafe { sys::check(arch::syscall(libc::SYS_futex, args)) };
        return parking_lot::in_kernel(word, kernel);
    }
    let operation = operation as i32;
    let command = operation & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    let bits = if command == FUTEX_WAIT {
        EVERY_BIT
    } else {
        last as u32
    };
    let deadline = deadline(operation, command, timeout as *const libc::timespec)?;
    wait(word, value as u32, bits, deadline, reason)
}

/// Returns the deadline. FUTEX_WAIT's timeout is relative, FUTEX_WAIT_BITSET's absolute, on the
/// clock that the flag names.
fn deadline(
    operation: i32,
    command: i32,
    timeout: *const libc::timespec,
) -> Result<Deadline, Errno> {
    let Some(nanos) = sys::fetch_timeout(timeout)? else {
        return Ok(Deadline::NEVER);
    };
    Ok(if command == FUTEX_WAIT {
        Deadline::after_nanos(nanos)
    } else if operation & FUTEX_CLOCK_REALTIME != 0 {
        Deadline::after_nanos(nanos.saturating_sub(sys::clock(libc::CLOCK_REALTIME)))
    } else {
        Deadline::from_nanos(nanos)
    })
}

fn wait(
    word: usize,
    expected: u32,
    bits: u32,
    deadline: Deadline,
    reason: impl FnOnce(usize) -> WaitReason,
) -> SysResult {
    if bits == 0 || !word.is_multiple_of(4) {
        return Err(Errno(libc::EINVAL));
    }
    if simulation::meets(Fault::SpuriousWake) {
        return Ok(0);
    }
    let mut found = Ok(expected);
    // Relaxed: ordered by the fence in `count::join`, which pairs with the wakers'.
    let check = || {
        found = sys::fetch_u32(word);
        found == Ok(expected)
    };
    match parking_lot::park(
        word,
        bits,
        deadline,
        Interruptible::OnceInFutex,
        reason,
        check,
    ) {
        // An interruption is a spurious wake-up, which every user of futexes must expect: a lock
        // waits again, a condition variable returns. Not EINTR: `std` would wait again for both.
        Parked::Woken | Parked::Interrupted => Ok(0),
        // The handlers that were pending have run: a spurious wake-up as well.
        Parked::SafePoint => {
            safepoint::run_pending();
            Ok(0)
        }
        Parked::Invalid => found.and(Err(Errno(libc::EAGAIN))),
        Parked::TimedOut => Err(Errno(libc::ETIMEDOUT)),
    }
}

fn wake(
    word: usize,
    count: usize,
    bits: u32,
    kernel: impl Fn([usize; 6]) -> SysResult,
    mut args: [usize; 6],
) -> usize {
    let count = (count as u32 as usize).min(i32::MAX as usize);
    // Without a fence: if a platform thread is missed now, a later wake sees it.
    if parking_lot::any_in_kernel(word) && hand_over::is_kernels_turn() {
        let woken = hand_over::wake_kernels(word, || kernel(args).unwrap_or(0));
        // For a count of 0 the kernel wakes one.
        return woken + parking_lot::unpark(word, count.saturating_sub(woken), bits);
    }
    let woken = parking_lot::unpark(word, count, bits);
    if woken == count {
        return woken;
    }
    arch::fence_after_atomic();
    if parking_lot::any_in_kernel(word) {
        args[2] = count - woken;
        return woken + kernel(args).unwrap_or(0);
    }
    woken
}

fn requeue(
    from: usize,
    wake_count: usize,
    to: usize,
    limit: usize,
    compare: Option<u32>,
    kernel: impl Fn([usize; 6]) -> SysResult,
    mut args: [usize; 6],
) -> SysResult {
    if !runtime::is_started() {
        return kernel(args);
    }
    if let Some(expected) = compare
        && sys::fetch_u32(from)? != expected
    {
        return Err(Errno(libc::EAGAIN));
    }
    let woken = parking_lot::unpark(from, wake_count, EVERY_BIT);
    let moved = parking_lot::requeue(from, to, limit);
    fence(Ordering::SeqCst);
    if parking_lot::any_in_kernel(from) {
        args[2] = wake_count - woken;
        args[3] = limit.saturating_sub(moved);
        // Platform threads that are requeued in the kernel are counted at `from`; see below.
        return Ok(woken + moved + requeue_in_kernel(kernel, args)?);
    }
    Ok(woken + moved)
}

/// Requeues in the kernel by waking. Threads requeued there would wait for a word under which they
/// are not counted, and a later wake of that word would miss them. So they are woken instead: a
/// spurious wake-up, which every user of futexes must expect.
fn requeue_in_kernel(kernel: impl Fn([usize; 6]) -> SysResult, args: [usize; 6]) -> SysResult {
    let count = (args[2] + args[3]).min(i32::MAX as usize);
    let operation = (FUTEX_WAKE | FUTEX_PRIVATE_FLAG) as usize;
    kernel([args[0], operation, count, 0, 0, 0])
}

/// Waits for a wake of `word` while its value is `expected`, on either kind of thread. May return
/// early: an interrupt or a signal handler ends the wait as well. The word belongs to an object of
/// this kind and address.
///
/// # Safety
/// `word` stays readable until this returns.
pub unsafe fn wait_while(kind: Kind, object: usize, word: *const u32, expected: u32) {
    let operation = FUTEX_WAIT | FUTEX_PRIVATE_FLAG;
    let args = [
        word as usize,
        operation as usize,
        expected as usize,
        0,
        0,
        0,
    ];
    // SAFETY: the caller's contract; no timeout.
    let _ = unsafe { wait_for(args, |_| WaitReason::at(kind, object)) };
}

/// Wakes up to `count` threads of either kind that wait for `word`. Only its address is used.
#[inline]
pub fn wake_waiters(word: *const u32, count: i32) {
    let operation = FUTEX_WAKE | FUTEX_PRIVATE_FLAG;
    let args = [word as usize, operation as usize, count as usize, 0, 0, 0];
    // SAFETY: a wake does not read the word.
    let _ = unsafe { futex(args, wake_op) };
}

/// Performs a private `FUTEX_WAKE_OP`; any other operation is the kernel's.
///
/// The operation changes its second word, wakes waiters of the first, and, by the old value of the
/// second, waiters there:
///
/// ```text
///   31     28 27     24 23                12 11                 0
///   +--------+---------+--------------------+--------------------+
///   | op     | cmp     | oparg, signed      | cmparg, signed     |
///   +--------+---------+--------------------+--------------------+
/// ```
///
/// # Safety
/// As for the system call.
#[cold]
pub unsafe fn wake_op(args: [usize; 6]) -> SysResult {
    let [first, operation, count, count_there, second, change] = args;
    let command = operation as i32 & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    // SAFETY: the caller's contract, here and below.
    unsafe {
        if command != FUTEX_WAKE_OP || !runtime::is_started() {
            return sys::check(arch::syscall(libc::SYS_futex, args));
        }
        let wake = |word, count| {
            let operation = (FUTEX_WAKE | FUTEX_PRIVATE_FLAG) as usize;
            futex([word, operation, count, 0, 0, 0], wake_op)
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
/// If a word that can be read is at the address, it may be written.
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

/// The numbers of the system calls, which `libc` does not have for every C library.
pub const SYS_FUTEX_WAITV: i64 = 449;
pub const SYS_FUTEX_WAKE: i64 = 454;
pub(crate) const SYS_FUTEX_WAIT: i64 = 455;
pub const SYS_FUTEX_REQUEUE: i64 = 456;
/// The flags of a futex: its word has 32 bits; only threads of one process use it, as in `futex`.
const FUTEX2_SIZE_U32: usize = 2;
const FUTEX2_PRIVATE: usize = FUTEX_PRIVATE_FLAG as usize;
/// The most words of a call (`FUTEX_WAITV_MAX`).
const MOST: usize = 128;
/// The size of the kernel's `struct futex_waitv`, in which the address is the second of 3 words.
const ENTRY: usize = 24;

/// Performs the operation of [`futex`] that a newer system call, such as `futex_wait`, stands for.
/// Returns `None` for a call that [`futex`] cannot express, such as one with some flags.
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
    Some(unsafe { futex(call, wake_op) })
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
            Err(_) => return kernel(), // It refuses this.
        }
    }
    pool::dedicated(WaitReason::call(c"futex_waitv"), || {
        announced(words, &kernel)
    })
}

/// Calls `kernel`, and announces meanwhile that the calling platform thread waits for these words.
fn announced(words: &[usize], kernel: &dyn Fn() -> SysResult) -> SysResult {
    match words.split_first() {
        None => kernel(),
        Some((&word, others)) => parking_lot::in_kernel(word, || announced(others, kernel)),
    }
}
