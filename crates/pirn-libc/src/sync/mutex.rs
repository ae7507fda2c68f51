//! `pthread_mutex_t`.
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

use crate::registry::interposed;
use crate::sync::{KeyKind, Waiting, acquire, by_stand_in, deadline, key, layout};
use crate::{Time, virtual_thread};
use core::ffi::c_int;
use libc::{clockid_t, pthread_mutex_t};
use pirn_rt::blocking::parking_lot;
use pirn_rt::glibc::symbols::real;
use pirn_rt::runtime;
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::{Awaited, Kind};

pub(crate) type Mutex = *mut pthread_mutex_t;

interposed! {
    family "Mutexes" for Correctness,
        cannot "give `EOWNERDEAD` for a thread of `pirn::thread` that ended, nor inherit priorities";

    Parks as {
        fn pthread_mutex_lock(mutex: Mutex) -> c_int
            = lock(mutex, || real!(fn pthread_mutex_lock(mutex: Mutex) -> c_int), || Ok(Deadline::NEVER));
        fn pthread_mutex_timedlock(mutex: Mutex, time: Time) -> c_int
            = lock(
                mutex,
                || real!(fn pthread_mutex_timedlock(mutex: Mutex, time: Time) -> c_int),
                || deadline(libc::CLOCK_REALTIME, time),
            );
        fn pthread_mutex_clocklock(mutex: Mutex, clock: clockid_t, time: Time) -> c_int
            = lock(
                mutex,
                || real!(fn pthread_mutex_clocklock(mutex: Mutex, clock: clockid_t, time: Time) -> c_int),
                || deadline(clock, time),
            );
    }
    Own by hand { pthread_mutex_unlock }
    Own as {
        fn pthread_mutex_trylock(mutex: Mutex) -> c_int
            = match by_stand_in::is_one(mutex) {
                true => by_stand_in::try_lock(mutex),
                false => real!(fn pthread_mutex_trylock(mutex: Mutex) -> c_int),
            };
        fn pthread_mutex_consistent(mutex: Mutex) -> c_int
            = match by_stand_in::is_one(mutex) {
                true => by_stand_in::make_consistent(mutex),
                false => real!(fn pthread_mutex_consistent(mutex: Mutex) -> c_int),
            };
        fn pthread_mutex_consistent_np(mutex: Mutex) -> c_int = pthread_mutex_consistent(mutex);
    }
}

const WAITER: u32 = 1;

/// Returns whether the running thread must wait in libc.
#[inline]
unsafe fn leave_to_libc(mutex: *const pthread_mutex_t) -> bool {
    // SAFETY: the caller's contract: an initialised mutex.
    virtual_thread().is_none()
        && !(unsafe { layout::inherits_priority(mutex) } && runtime::is_started())
}

/// Calls libc's function, or locks a mutex by trying.
unsafe fn lock(
    mutex: Mutex,
    libc_lock: impl FnOnce() -> c_int,
    deadline: impl FnOnce() -> Result<Deadline, c_int>,
) -> c_int {
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
        if result == libc::EOWNERDEAD && layout::inherits_priority(mutex) {
            layout::own(mutex);
        }
        result
    };
    // SAFETY: as above.
    let prepare = || unsafe {
        if layout::checks_errors(mutex) && layout::owns(mutex) {
            return Err(libc::EDEADLK);
        }
        Ok(Waiting {
            awaited: Awaited::at(Kind::Mutex, mutex.addr()),
            key: key(mutex, KeyKind::Lock),
            bits: WAITER,
            unseen: layout::may_be_released_unseen(mutex),
            hearing: None,
        })
    };
    acquire(libc::EBUSY, attempt, prepare, deadline)
}

/// `pthread_mutex_unlock`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe {
        match by_stand_in::is_one(mutex) {
            true => by_stand_in::unlock(mutex),
            false => real!(fn pthread_mutex_unlock(mutex: *mut pthread_mutex_t) -> c_int),
        }
    };
    // From here on the mutex may be gone: its address is only a key. libc unlocks by an atomic
    // exchange, on x86 a full barrier. So either this thread sees the waiter, or the waiter's
    // attempt under the bucket's lock sees the mutex free.
    let key = key(mutex, KeyKind::Lock);
    if parking_lot::any_waiting(key) && result == 0 {
        parking_lot::unpark(key, 1, WAITER);
    }
    result
}

/// Wakes one thread that waits for the robust mutex at this address, whose owner has died.
pub(crate) fn owner_died(address: usize) {
    let mutex = core::ptr::without_provenance::<pthread_mutex_t>(address);
    parking_lot::unpark(key(mutex, KeyKind::Lock), 1, WAITER);
    // As the kernel does: libc's waiters for robust mutexes are in the shared queue. One of each
    // kind is woken, of which one will wait again.
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
            false => layout::checks_owner(mutex) && !layout::owns(mutex),
        }
    }
}
