//! `pthread_cond_t`: ours, for all threads, unless it is shared between processes.
//!
//! libc's function would unlock the mutex inside libc, where virtual threads that wait for the
//! mutex would not be noticed. So this is a condition variable of the simplest kind, like `std`'s:
//! a counter of signals, in the first word of the object, and a futex on it. (libc's `init` sets
//! the clock, which stays in place.) A waiter reads the counter, unlocks, and sleeps unless the
//! counter has changed. So no signal after the unlocking is lost. Wake-ups without a signal are
//! possible, as POSIX allows.
//!
//! The object may be destroyed as soon as all that wait have been woken, and its memory may become
//! another one, in which a waiter that has not slept yet would take the counter for its own. So the
//! second word counts the waiters, and `destroy` waits until the last has left.
//!
//! ```text
//!   waiter                            destroy
//!   w1  word 2: + 2                   d1  word 2: + 1
//!   w2  unlocks, sleeps, is woken     d2  sleeps while word 2 > 1
//!   w3  word 2: - 2
//!   w4  was it 3? wake d2
//! ```
//!
//! The thread that destroys it knows of each waiter by the mutex, so w1 is before d1. After w3 only
//! the word's address is used.
//!
//! If a platform thread is cancelled (`pthread_cancel`) while it waits, it acts upon the
//! cancellation when it has the mutex again, as POSIX demands, but not before it is woken.

use crate::registry::interposed;
use crate::sync::{Recheck, deadline, layout, mutex};
use crate::{cancel, virtual_thread};
use core::ffi::c_int;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{
    FUTEX_CLOCK_REALTIME, FUTEX_PRIVATE_FLAG, FUTEX_WAIT_BITSET, clockid_t, pthread_cond_t,
    pthread_mutex_t, timespec,
};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::{self, futex};
use pirn_rt::sys::Errno;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;

interposed! {
    family "Condition variables" for Correctness;

    Parks by hand {
        pthread_cond_wait, pthread_cond_timedwait, pthread_cond_clockwait,
        pthread_cond_destroy: "until all that it has woken have left it",
    }
    Own as {
        fn pthread_cond_signal(cond: Cond) -> c_int = match layout::cond_is_shared(cond) {
            true => libcs!(),
            false => signal(cond, 1),
        };
        fn pthread_cond_broadcast(cond: Cond) -> c_int = match layout::cond_is_shared(cond) {
            true => libcs!(),
            false => signal(cond, i32::MAX),
        };
    }
}

pub(crate) type Cond = *mut pthread_cond_t;

#[libc_fn]
pub unsafe fn pthread_cond_wait(cond: Cond, mutex: *mut pthread_mutex_t) -> c_int {
    if left_to_libc(cond) {
        return libcs!();
    }
    cancelled_after(|| wait(cond, mutex, None))
}

/// Uses the clock that the condition variable was initialised with.
#[libc_fn]
pub unsafe fn pthread_cond_timedwait(
    cond: Cond,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    if left_to_libc(cond) {
        return libcs!();
    }
    let clock = if layout::cond_is_monotonic(cond) {
        libc::CLOCK_MONOTONIC
    } else {
        libc::CLOCK_REALTIME
    };
    cancelled_after(|| wait(cond, mutex, Some((clock, &*time))))
}

#[libc_fn]
pub unsafe fn pthread_cond_clockwait(
    cond: Cond,
    mutex: *mut pthread_mutex_t,
    clock: clockid_t,
    time: *const timespec,
) -> c_int {
    if left_to_libc(cond) {
        return libcs!();
    }
    cancelled_after(|| wait(cond, mutex, Some((clock, &*time))))
}

/// Waits, and acts upon a cancellation before it, or after it, when the thread has the mutex again.
///
/// # Safety
/// As for [`cancel::point`].
unsafe fn cancelled_after(wait: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        cancel::before_wait();
        let result = wait();
        cancel::pthread_testcancel();
        result
    }
}

/// Returns whether the running thread waits in libc: if it is a platform thread, and other
/// processes may signal the condition variable.
unsafe fn left_to_libc(cond: *const pthread_cond_t) -> bool {
    // SAFETY: the caller's contract: an initialised condition variable.
    virtual_thread().is_none() && unsafe { layout::cond_is_shared(cond) }
}

/// Unlocks the mutex, waits for a signal or until the given time, and locks the mutex again.
unsafe fn wait(
    cond: Cond,
    mutex: *mut pthread_mutex_t,
    until: Option<(clockid_t, &timespec)>,
) -> c_int {
    let supported = |clock| matches!(clock, libc::CLOCK_REALTIME | libc::CLOCK_MONOTONIC);
    if until.is_some_and(|(clock, time)| {
        !supported(clock) || !(0..1_000_000_000).contains(&time.tv_nsec)
    }) {
        return libc::EINVAL;
    }
    // SAFETY: the caller's contract, here and below.
    unsafe {
        if mutex::unlocking_is_an_error(mutex) {
            return libc::EPERM;
        }
        let word = counter(cond);
        // Relaxed: a signal after our unlocking changes the counter after this read; see `signal`.
        let seen = word.load(Ordering::Relaxed);
        let shared = layout::cond_is_shared(cond);
        if !shared {
            inside(cond).fetch_add(WAITER, Ordering::Relaxed); // Relaxed: the mutex orders it.
        }
        mutex::pthread_mutex_unlock(mutex);
        let result = if shared {
            look_again_soon(cond, until)
        } else {
            let result = sleep(word, seen, until);
            leave(inside(cond));
            result
        };
        let locked = mutex::pthread_mutex_lock(mutex);
        if locked != 0 { locked } else { result }
    }
}

/// Sleeps until the counter is no longer `seen`, or something wakes the thread.
unsafe fn sleep(word: &AtomicU32, seen: u32, until: Option<(clockid_t, &timespec)>) -> c_int {
    const EVERY_BIT: u32 = u32::MAX;
    let mut operation = FUTEX_WAIT_BITSET | FUTEX_PRIVATE_FLAG;
    let mut time = None;
    if let Some((clock, until)) = until {
        if clock == libc::CLOCK_REALTIME {
            operation |= FUTEX_CLOCK_REALTIME;
        }
        // A time before 1970 has passed, but the kernel would return an error.
        time = Some(timespec {
            tv_sec: until.tv_sec.max(0),
            tv_nsec: until.tv_nsec,
        });
    }
    let pointer = time.as_ref().map_or(core::ptr::null(), core::ptr::from_ref);
    let args = [
        word.as_ptr() as usize,
        operation as usize,
        seen as usize,
        pointer as usize,
        0,
        EVERY_BIT as usize,
    ];
    // SAFETY: the caller keeps the condition variable alive; the timespec is ours.
    match unsafe { futex::wait_for(args, |word| WaitReason::at(Kind::Condvar, word)) } {
        Err(Errno(libc::ETIMEDOUT)) => libc::ETIMEDOUT,
        _ => 0, // Woken, or the counter has changed, or a signal handler ran, or the thread was interrupted.
    }
}

/// Waits a little in place of a signal that may come from another process. Returns as from a
/// wake-up without a signal.
unsafe fn look_again_soon(
    cond: *const pthread_cond_t,
    until: Option<(clockid_t, &timespec)>,
) -> c_int {
    let until = match until {
        // SAFETY: a valid timespec.
        Some((clock, time)) => unsafe { deadline(clock, time) }.unwrap_or(Deadline::NEVER),
        None => Deadline::NEVER,
    };
    let reason = WaitReason::at(Kind::Condvar, cond.addr()).looking();
    blocking::pause_until(
        reason,
        Recheck::new(true).until(until),
        Interruptible::OnceInSleep,
    );
    if until.has_passed() {
        libc::ETIMEDOUT
    } else {
        0
    }
}

/// Counts a signal and wakes `count` waiters. A waiter has read the counter while it held the
/// mutex. If it unlocked before the signalled change was made under the mutex, it finds the counter
/// changed, or it sleeps already and is woken.
unsafe fn signal(cond: Cond, count: i32) -> c_int {
    // SAFETY: the caller's contract.
    let word = unsafe { counter(cond) };
    // Relaxed: the mutex orders the data; the futex orders counter and sleep.
    word.fetch_add(1, Ordering::Relaxed);
    futex::wake_waiters(word.as_ptr(), count);
    0
}

/// What a waiter adds to the second word; 1: a thread waits in `destroy`.
const WAITER: u32 = 2;

/// Counts a waiter out.
fn leave(inside: &AtomicU32) {
    let word = inside.as_ptr();
    // Release: pairs with the Acquire in `destroy`. After this the memory may be gone.
    if inside.fetch_sub(WAITER, Ordering::Release) == WAITER | 1 {
        futex::wake_waiters(word, i32::MAX);
    }
}

#[libc_fn]
pub unsafe fn pthread_cond_destroy(cond: Cond) -> c_int {
    if layout::cond_is_shared(cond) {
        return libcs!();
    }
    let inside = inside(cond);
    // Acquire: pairs with the Release of each that leaves.
    let mut waiters = inside.fetch_or(1, Ordering::Acquire) | 1;
    while waiters > 1 {
        futex::wait_while(Kind::Condvar, cond.addr(), inside.as_ptr(), waiters);
        waiters = inside.load(Ordering::Acquire);
    }
    inside.store(0, Ordering::Relaxed); // Relaxed: no thread uses it any more.

    0
}

/// Returns the count of waiters.
unsafe fn inside<'a>(cond: Cond) -> &'a AtomicU32 {
    // SAFETY: as for `counter`, which is before it.
    unsafe { AtomicU32::from_ptr(cond.cast::<u32>().add(1)) }
}

/// Returns the counter of signals.
unsafe fn counter<'a>(cond: Cond) -> &'a AtomicU32 {
    // SAFETY: the caller's contract: an initialised condition variable, larger than a word. libc
    // uses these words only in functions that are not called for it.
    unsafe { AtomicU32::from_ptr(cond.cast()) }
}
