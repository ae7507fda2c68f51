//! `pthread_mutex_t`, and `pthread_spinlock_t`.
//!
//! No wake-up is lost between the two kinds of waiters. Platform threads wait in libc, and libc's
//! unlocking wakes one of them; virtual threads wait in the parking lot, and unlocking wakes one of
//! them as well. Both try again. If a thread fails, another one has overtaken it, and will unlock
//! in its turn.
//!
//! Kinds: normal, adaptive, recursive and error-checking mutexes behave as with platform threads.
//! So do robust ones ([`by_stand_in`]), except that a virtual thread that `pthread_create` has not
//! made and that ends without unlocking leaves the mutex locked: `EOWNERDEAD` comes from the
//! kernel, which knows OS threads only, or from [`robust`](crate::sync::robust). For the same
//! reason there is no priority inheritance: waiting would pass the owner's thread id to the kernel,
//! which does not know it. Once there are virtual threads, a mutex with that protocol acts like one
//! without, on platform threads as well. Priority ceilings are not supported on virtual threads.
//!
//! A virtual thread spins for a moment for a spinlock. Then it waits in the parking lot, since the
//! holder may be waiting for this very carrier. libc unlocks by a plain store, so an unlocking
//! thread may not see the waiter, which looks again after a millisecond: no barrier for threads
//! that never wait.

use crate::futex;
use crate::registry::interposed;
use crate::sync::{
    KeyKind, Until, Waiting, acquire, by_stand_in, end_of, key, layout, lock_by_trying, released,
};
use crate::{Time, virtual_thread};
use core::ffi::c_int;
use libc::{clockid_t, pthread_mutex_t, pthread_spinlock_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::parking_lot;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sched::runtime;
use pirn_rt::sched::simulation::{self, Point};
use pirn_rt::sys;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;

pub(crate) type Mutex = *mut pthread_mutex_t;

interposed! {
    family "Mutexes and spinlocks" for Correctness,
        cannot "give `EOWNERDEAD` for a thread of `pirn::thread` that ended, nor inherit priorities";

    Parks as {
        fn pthread_mutex_lock(mutex: Mutex) -> c_int = lock(mutex, None, || libcs!());
        fn pthread_mutex_timedlock(mutex: Mutex, time: Time) -> c_int
            = lock(mutex, Some((libc::CLOCK_REALTIME, time)), || libcs!());
        fn pthread_mutex_clocklock(mutex: Mutex, clock: clockid_t, time: Time) -> c_int
            = lock(mutex, Some((clock, time)), || libcs!());
    }
    Own by hand { pthread_mutex_unlock }
    Own as {
        fn pthread_mutex_trylock(mutex: Mutex) -> c_int = match by_stand_in::is_one(mutex) {
            true => by_stand_in::try_lock(mutex),
            false => libcs!(),
        };
        fn pthread_mutex_consistent(mutex: Mutex) -> c_int = match by_stand_in::is_one(mutex) {
            true => by_stand_in::make_consistent(mutex),
            false => libcs!(),
        };
    }
    Own alias { pthread_mutex_consistent_np = pthread_mutex_consistent }
    Parks by hand { pthread_spin_lock: "spins first" }
    Own by hand { pthread_spin_unlock }
    Own as {
        /// In libc, the same function as the one that unlocks.
        fn pthread_spin_init(lock: *mut pthread_spinlock_t, shared: c_int) -> c_int = libcs!();
    }
}

const WAITER: u32 = 1;

/// Returns whether the running thread must wait in libc.
#[inline]
unsafe fn leave_to_libc(mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: the caller's contract: an initialised mutex.
    virtual_thread().is_none()
        && !(unsafe { layout::kind(mutex).inherits_priority() } && runtime::is_started())
}

/// Calls libc's function, or locks a mutex by trying.
unsafe fn lock(mutex: Mutex, until: Until, libc_lock: impl FnOnce() -> c_int) -> c_int {
    // SAFETY: the caller's contract.
    if unsafe { leave_to_libc(mutex) } {
        return libc_lock();
    }
    // SAFETY: the caller's contract, here and below.
    let attempt = || unsafe {
        if by_stand_in::is_one(mutex) {
            return by_stand_in::try_lock(mutex);
        }
        let result = real!(fn pthread_mutex_trylock(mutex: Mutex) -> c_int);
        if result == libc::EOWNERDEAD && layout::kind(mutex).inherits_priority() {
            layout::own(mutex);
        }
        result
    };
    // SAFETY: the caller's contract.
    let prepare = || unsafe {
        let kind = layout::kind(mutex);
        if kind.checks_errors() && layout::owns(mutex) {
            return Err(libc::EDEADLK);
        }
        if kind.inherits_priority() {
            futex::notice_no_inheritance();
        }
        Ok(Waiting {
            reason: WaitReason::at(Kind::Mutex, mutex.addr()),
            deadline: end_of(until)?,
            key: key(mutex, KeyKind::Lock),
            bits: WAITER,
            unseen: kind.may_be_released_unseen(),
            interruptible: Interruptible::Never,
        })
    };
    acquire(libc::EBUSY, attempt, prepare)
}

#[libc_fn]
pub unsafe fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    let result = match by_stand_in::is_one(mutex) {
        true => by_stand_in::unlock(mutex),
        false => libcs!(),
    };
    // From here on the mutex may be gone: its address is only a key. libc unlocks by an atomic
    // exchange, after which `any_waiting` has a full fence. So either this thread sees the waiter,
    // or the waiter's attempt under the bucket's lock sees the mutex free.
    let key = key(mutex, KeyKind::Lock);
    if parking_lot::any_waiting(key) && result == 0 {
        parking_lot::unpark(key, 1, WAITER);
    }
    simulation::point(Point::Unlock);
    result
}

/// Wakes one thread that waits for the robust mutex at this address, whose owner has died.
pub(crate) fn owner_died(address: usize) {
    let mutex = core::ptr::without_provenance::<pthread_mutex_t>(address);
    parking_lot::unpark(key(mutex, KeyKind::Lock), 1, WAITER);
    // As the kernel does: libc's waiters for robust mutexes are in the shared queue. One of each
    // kind is woken; one of the two will wait again.
    // SAFETY: a wake does not read the word.
    let _ = unsafe { sys::call!(libc::SYS_futex, address, libc::FUTEX_WAKE, 1) };
}

/// Returns whether unlocking would fail because another thread or none has the mutex.
///
/// # Safety
/// `mutex` is initialised.
pub(crate) unsafe fn unlocking_is_an_error(mutex: Mutex) -> bool {
    // SAFETY: the caller's contract.
    unsafe {
        match by_stand_in::is_one(mutex) {
            true => !by_stand_in::has(mutex),
            false => layout::kind(mutex).checks_owner() && !layout::owns(mutex),
        }
    }
}

/// Attempts before the thread waits.
const SPINS: u32 = 100;

/// A virtual thread spins for a moment, then parks between attempts.
#[libc_fn]
pub unsafe fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int {
    if virtual_thread().is_none() {
        return libcs!();
    }
    let attempt = || real!(fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> c_int) == 0;
    for _ in 0..SPINS {
        if attempt() {
            return 0;
        }
        core::hint::spin_loop();
    }
    lock_by_trying(c"pthread_spin_lock", lock, attempt);
    0
}

#[libc_fn]
pub unsafe fn pthread_spin_unlock(lock: *mut pthread_spinlock_t) -> c_int {
    let result = libcs!();
    released(lock);
    result
}
