//! Futexes, for both kinds of threads.
//!
//! A virtual thread that waits for a futex word waits in the [`parking_lot`](super::parking_lot). A
//! platform thread waits in the kernel, and counts itself in the lot. A wake serves the virtual
//! waiters first. It calls the kernel only if it has woken fewer threads than asked for and a
//! platform thread may be waiting.
//!
//! That holds for private futexes (all of `std`'s, `parking_lot`'s and `crossbeam`'s). A futex
//! without `FUTEX_PRIVATE_FLAG` may be shared with other processes, even through another mapping:
//! only the kernel knows who waits. There a virtual thread waits through a platform thread of its
//! own.

use super::offload;
use super::parking_lot::{self, Parked};
use super::{futex_op, hand_over};
use crate::arch;
use crate::runtime;
use crate::sys::{self, Errno, SysResult};
use crate::time::Deadline;
use crate::vthread::awaited::{Awaited, Kind};
use crate::vthread::{self, summons, wait_word::Hearing};
use core::sync::atomic::{Ordering, fence};
use libc::{
    FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE, FUTEX_PRIVATE_FLAG, FUTEX_REQUEUE, FUTEX_WAIT,
    FUTEX_WAIT_BITSET, FUTEX_WAKE, FUTEX_WAKE_BITSET,
};

const EVERY_BIT: u32 = u32::MAX;

/// A function for further operations.
pub(crate) type Rarely = unsafe fn([usize; 6]) -> SysResult;

/// Performs the `futex` system call, with the arguments of `syscall(2)`. `rarely` performs those of
/// its operations that are not here.
///
/// # Safety
/// As for the system call.
pub unsafe fn futex(args: [usize; 6], rarely: Rarely) -> SysResult {
    let operation = args[1] as i32;
    let private = operation & FUTEX_PRIVATE_FLAG != 0;
    let command = operation & !(FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME);
    // SAFETY: passed on.
    let kernel = |args: [usize; 6]| unsafe { sys::check(arch::syscall(libc::SYS_futex, args)) };
    if !private {
        let waits = command == FUTEX_WAIT || command == FUTEX_WAIT_BITSET;
        return if waits && vthread::parkable().is_some() {
            offload::dedicated(Awaited::at(Kind::Futex, args[0]), || kernel(args))
        } else {
            kernel(args)
        };
    }
    let [word, _, value, fourth, second, last] = args;
    let value = value as u32 as usize; // an `int`: the upper half of its register is undefined
    match command {
        FUTEX_WAIT | FUTEX_WAIT_BITSET => {
            // SAFETY: the caller's contract.
            unsafe { wait_for(args, |word| Awaited::at(Kind::Futex, word)) }
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

/// Performs a private `FUTEX_WAIT` or `FUTEX_WAIT_BITSET`. `awaited` returns what to say about a
/// wait for the word.
///
/// # Safety
/// As for the system call.
#[inline]
pub unsafe fn wait_for(args: [usize; 6], awaited: impl FnOnce(usize) -> Awaited) -> SysResult {
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
    wait(word, value as u32, bits, deadline, awaited)
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
    awaited: impl FnOnce(usize) -> Awaited,
) -> SysResult {
    if bits == 0 || !word.is_multiple_of(4) {
        return Err(Errno(libc::EINVAL));
    }
    let mut found = Ok(expected);
    // SeqCst: in one order with the counting in `park` and the wakers' fence.
    let check = || {
        found = sys::fetch_u32(word);
        found == Ok(expected)
    };
    match parking_lot::park(word, bits, deadline, Some(Hearing::Futex), awaited, check) {
        // An interruption is a spurious wake-up, which every user of futexes must expect: a lock
        // waits again, a condition variable returns. Not EINTR: `std` would wait again for both.
        Parked::Woken | Parked::Interrupted => Ok(0),
        // The handlers that the thread was summoned for have run: a spurious wake-up as well.
        Parked::Summoned => {
            summons::attend();
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
        return woken + parking_lot::unpark(word, count - woken, bits);
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
    let _ = unsafe { wait_for(args, |_| Awaited::at(kind, object)) };
}

/// Wakes up to `count` threads of either kind that wait for `word`. Only its address is used.
#[inline]
pub fn wake_waiters(word: *const u32, count: i32) {
    let operation = FUTEX_WAKE | FUTEX_PRIVATE_FLAG;
    let args = [word as usize, operation as usize, count as usize, 0, 0, 0];
    // SAFETY: a wake does not read the word.
    let _ = unsafe { futex(args, futex_op::call) };
}
