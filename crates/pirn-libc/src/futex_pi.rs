//! Futexes with priority inheritance (`FUTEX_LOCK_PI` and its kin), which have an owner.
//!
//! ```text
//!   31              30           29 .. 0
//!   +---------------+------------+-----------------------+
//!   | FUTEX_WAITERS | OWNER_DIED | id of the owner, or 0 |
//!   +---------------+------------+-----------------------+
//! ```
//!
//! The kernel looks the owner up, and knows no virtual thread. So, as with `pthread` mutexes of
//! that protocol, priority is not inherited once there are virtual threads: all threads lock the
//! word here, and wait for it as for any other. Where several virtual threads have one id, the
//! carrier's, an owner is not told from others: each may unlock the word, and locking it twice
//! waits.

use crate::{identity, posix, virtual_thread};
use core::sync::atomic::{AtomicU32, Ordering::SeqCst};
use libc::{
    FUTEX_CLOCK_REALTIME, FUTEX_CMP_REQUEUE_PI, FUTEX_LOCK_PI, FUTEX_LOCK_PI2, FUTEX_OWNER_DIED,
    FUTEX_PRIVATE_FLAG, FUTEX_TID_MASK, FUTEX_TRYLOCK_PI, FUTEX_UNLOCK_PI, FUTEX_WAIT_BITSET,
    FUTEX_WAIT_REQUEUE_PI, FUTEX_WAITERS,
};
use pirn_rt::blocking::futex;
use pirn_rt::runtime;
use pirn_rt::sys::{self, Errno, SysResult};
use pirn_rt::vthread::awaited::{Awaited, Kind};

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
        _ if !runtime::is_started() || runtime::has_forked() => {}
        FUTEX_LOCK_PI => return lock(Some(FUTEX_CLOCK_REALTIME)),
        FUTEX_LOCK_PI2 => return lock(Some(flags & FUTEX_CLOCK_REALTIME)),
        FUTEX_TRYLOCK_PI => return lock(None),
        FUTEX_UNLOCK_PI => return word_at(address).and_then(unlock),
        // Its waiters are in the kernel, and would own the word in a carrier's name.
        FUTEX_WAIT_REQUEUE_PI | FUTEX_CMP_REQUEUE_PI if virtual_thread().is_some() => {
            return Err(Errno(libc::ENOSYS));
        }
        _ => {}
    }
    // SAFETY: the caller's contract.
    unsafe { futex::wake_op(args) }
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
                // Others may wait still: who has waited wakes them when it unlocks.
                let next = seen & FUTEX_OWNER_DIED | waited | own;
                if word.compare_exchange(seen, next, SeqCst, SeqCst).is_ok() {
                    return Ok(0);
                }
                continue;
            }
            owner if owner == own && posix::is_on() => return Err(Errno(libc::EDEADLK)),
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
        let operation = (FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG | clock) as usize;
        let (address, bits) = (word.as_ptr().addr(), u32::MAX as usize);
        let args = [address, operation, contended as usize, time, 0, bits];
        // SAFETY: the caller's contract.
        match unsafe { futex::wait_for(args, |word| Awaited::at(Kind::Futex, word)) } {
            Err(Errno(libc::EAGAIN | libc::EINTR)) | Ok(_) => waited = FUTEX_WAITERS,
            failed => return failed,
        }
    }
}

fn unlock(word: &AtomicU32) -> SysResult {
    let owner = word.load(SeqCst) & FUTEX_TID_MASK;
    if owner == 0 || posix::is_on() && owner != identity::gettid() as u32 {
        return Err(Errno(libc::EPERM));
    }
    word.store(0, SeqCst);
    futex::wake_waiters(word.as_ptr(), 1);
    Ok(0)
}
