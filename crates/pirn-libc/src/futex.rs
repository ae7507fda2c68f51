//! Futexes with priority inheritance (`FUTEX_LOCK_PI` and its kin), which have an owner.
//!
//! ```text
//!   31              30           29 .. 0
//!   +---------------+------------+-----------------------+
//!   | FUTEX_WAITERS | OWNER_DIED | id of the owner, or 0 |
//!   +---------------+------------+-----------------------+
//! ```
//!
//! The kernel looks the owner up, and knows no virtual thread. So no thread inherits priority: all
//! threads lock the word here, and wait for it as for any other, also before the runtime starts. A
//! platform thread that the kernel had queued before that, by priority, would not be woken later.
//! If several virtual threads have one id, the carrier's, the word does not tell which of them owns
//! it: each may unlock the word, and a thread that locks it twice waits.
//!
//! `FUTEX_WAIT_REQUEUE_PI` and `FUTEX_CMP_REQUEUE_PI` are `ENOSYS`: the kernel would make a waiter
//! the owner of the word.

use crate::{identity, posix, virtual_thread};
use core::sync::atomic::Ordering::{Relaxed, SeqCst};
use core::sync::atomic::{AtomicBool, AtomicU32};
use libc::{
    FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE_PI, FUTEX_LOCK_PI, FUTEX_LOCK_PI2, FUTEX_OWNER_DIED,
    FUTEX_PRIVATE_FLAG, FUTEX_TID_MASK, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI, FUTEX_WAIT_BITSET,
    FUTEX_WAIT_REQUEUE_PI, FUTEX_WAITERS,
};
use pirn_rt::blocking::futex;
use pirn_rt::sched::runtime;
use pirn_rt::sys::{self, Errno, SysResult, call};
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};

/// Performs a private futex operation with priority inheritance, or one of the rarer others.
///
/// # Safety
/// As for the system call.
#[cold]
pub(super) unsafe fn call(args: [usize; 6]) -> SysResult {
    let [address, operation, _, time, ..] = args;
    let flags = FUTEX_PRIVATE_FLAG | FUTEX_CLOCK_REALTIME;
    let (command, flags) = (operation as i32 & !flags, operation as i32 & flags);
    let lock = |wait: Option<i32>| {
        // SAFETY: the caller's contract.
        word_at(address).and_then(|word| unsafe { lock(word, wait, time) })
    };
    match command {
        FUTEX_LOCK_PI => lock(Some(FUTEX_CLOCK_REALTIME)),
        FUTEX_LOCK_PI2 => lock(Some(flags & FUTEX_CLOCK_REALTIME)),
        FUTEX_TRYLOCK_PI => lock(None),
        FUTEX_UNLOCK_PI => word_at(address).and_then(unlock),
        FUTEX_WAIT_REQUEUE_PI | FUTEX_CMP_REQUEUE_PI => Err(Errno(libc::ENOSYS)),
        // SAFETY: the caller's contract.
        _ => unsafe { futex::wake_op(args) },
    }
}

/// Says, once, that the running thread, which is about to wait, does not give its priority to the
/// owner, if it has one to give: a real-time policy.
#[cold]
pub(crate) fn notice_no_inheritance() {
    static SAID: AtomicBool = AtomicBool::new(false);
    // Relaxed: no other data. A virtual thread has no such policy.
    if SAID.load(Relaxed) || virtual_thread().is_some() {
        return;
    }
    // SAFETY: no pointers.
    let policy = unsafe { call!(libc::SYS_sched_getscheduler, 0) };
    let policy = policy.map(|policy| policy as i32 & !libc::SCHED_RESET_ON_FORK);
    if let Ok(libc::SCHED_FIFO | libc::SCHED_RR | libc::SCHED_DEADLINE) = policy {
        sys::notice_once(
            &SAID,
            "a thread with a real-time policy waits for a lock with priority inheritance \
             (PTHREAD_PRIO_INHERIT, FUTEX_LOCK_PI), whose owner does not inherit its priority",
        );
    }
}

/// Returns whether each thread that may lock a word has an id of its own.
fn ids_are_unique() -> bool {
    posix::is_on() || !runtime::is_started() || runtime::has_forked()
}

fn word_at<'a>(address: usize) -> Result<&'a AtomicU32, Errno> {
    if !address.is_multiple_of(4) {
        return Err(Errno(libc::EINVAL));
    }
    sys::fetch_u32(address)?;
    // SAFETY: aligned and readable; the caller of the system call keeps it.
    Ok(unsafe { AtomicU32::from_ptr(address as *mut u32) })
}

/// Locks the word, and waits for that as long as `wait`, the flag of the clock, is given.
///
/// # Safety
/// As for the system call.
unsafe fn lock(word: &AtomicU32, wait: Option<i32>, time: usize) -> SysResult {
    let own = identity::gettid() as u32;
    let mut waited = 0;
    loop {
        let seen = word.load(SeqCst);
        let contended = seen | FUTEX_WAITERS;
        match seen & FUTEX_TID_MASK {
            0 => {
                // Others may wait still: a thread that has waited wakes them when it unlocks.
                let next = seen & FUTEX_OWNER_DIED | waited | own;
                if word.compare_exchange(seen, next, SeqCst, SeqCst).is_ok() {
                    return Ok(0);
                }
                continue;
            }
            owner if owner == own && ids_are_unique() => return Err(Errno(libc::EDEADLK)),
            _ => {}
        }
        let Some(clock) = wait else {
            return Err(Errno(libc::EAGAIN));
        };
        if seen != contended
            && word
                .compare_exchange(seen, contended, SeqCst, SeqCst)
                .is_err()
        {
            continue;
        }
        notice_no_inheritance();
        let operation = (FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | clock) as usize;
        let (address, bits) = (word.as_ptr().addr(), u32::MAX as usize);
        let args = [address, operation, contended as usize, time, 0, bits];
        // SAFETY: the caller's contract.
        match unsafe { futex::wait_for(args, |word| WaitReason::at(Kind::Futex, word)) } {
            Err(Errno(libc::EAGAIN | libc::EINTR)) | Ok(_) => waited = FUTEX_WAITERS,
            failed => return failed,
        }
    }
}

fn unlock(word: &AtomicU32) -> SysResult {
    let owner = word.load(SeqCst) & FUTEX_TID_MASK;
    if owner == 0 || ids_are_unique() && owner != identity::gettid() as u32 {
        return Err(Errno(libc::EPERM));
    }
    word.store(0, SeqCst);
    futex::wake_waiters(word.as_ptr(), 1);
    Ok(0)
}
