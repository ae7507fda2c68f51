//! `pthread_rwlock_t`.
//!
//! As with mutexes, there are two queues, and no wake-up is lost. Unlocking wakes all virtual
//! threads that want to read, and one that wants to write; all of them try again. If a writer
//! fails, the readers that overtook it wake it; if readers fail, the writer wakes them. As in glibc
//! by default, readers are preferred.

use crate::registry::interposed;
use crate::sync::{KeyKind, Until, Waiting, acquire, end_of, key, layout};
use crate::{Time, virtual_thread};
use core::ffi::c_int;
use core::sync::atomic::AtomicBool;
use libc::{clockid_t, pthread_rwlock_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::parking_lot;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sys;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use pirn_rt::vthread::wait_word::Interruptible;

pub(crate) type RwLock = *mut pthread_rwlock_t;

interposed! {
    family "Locks for reading and writing" for Correctness,
        cannot "prefer writers, whatever the attributes say";

    Parks as {
        fn pthread_rwlock_rdlock(lock: RwLock) -> c_int
            = lock_as(READER, lock, None, || libcs!());
        fn pthread_rwlock_wrlock(lock: RwLock) -> c_int
            = lock_as(WRITER, lock, None, || libcs!());
        fn pthread_rwlock_timedrdlock(lock: RwLock, time: Time) -> c_int
            = lock_as(READER, lock, Some((libc::CLOCK_REALTIME, time)), || libcs!());
        fn pthread_rwlock_timedwrlock(lock: RwLock, time: Time) -> c_int
            = lock_as(WRITER, lock, Some((libc::CLOCK_REALTIME, time)), || libcs!());
        fn pthread_rwlock_clockrdlock(lock: RwLock, clock: clockid_t, time: Time) -> c_int
            = lock_as(READER, lock, Some((clock, time)), || libcs!());
        fn pthread_rwlock_clockwrlock(lock: RwLock, clock: clockid_t, time: Time) -> c_int
            = lock_as(WRITER, lock, Some((clock, time)), || libcs!());
    }
    Own by hand { pthread_rwlock_unlock }
}

const READER: u32 = 2;
const WRITER: u32 = 4;

/// Calls libc's function, or, on a virtual thread, locks by trying.
unsafe fn lock_as(
    kind: u32,
    lock: RwLock,
    until: Until,
    libc_lock: impl FnOnce() -> c_int,
) -> c_int {
    if virtual_thread().is_none() {
        return libc_lock();
    }
    // SAFETY: the caller's contract.
    let attempt = || unsafe {
        if kind == READER {
            real!(fn pthread_rwlock_tryrdlock(lock: RwLock) -> c_int)
        } else {
            real!(fn pthread_rwlock_trywrlock(lock: RwLock) -> c_int)
        }
    };
    // SAFETY: the caller's contract.
    let prepare = || unsafe {
        // A thread of another process may have the same id.
        if layout::owns_for_writing(lock) && !layout::rwlock_is_shared(lock) {
            return Err(libc::EDEADLK);
        }
        let to_do = match kind {
            READER => Kind::RwLockToRead,
            _ => {
                notice_preference(lock);
                Kind::RwLockToWrite
            }
        };
        Ok(Waiting {
            reason: WaitReason::at(to_do, lock.addr()),
            deadline: end_of(until)?,
            key: key(lock, KeyKind::Lock),
            bits: kind,
            unseen: layout::rwlock_is_shared(lock),
            interruptible: Interruptible::Never,
        })
    };
    acquire(libc::EBUSY, attempt, prepare)
}

/// Says, once, that readers overtake the running thread, if the program does not want that.
unsafe fn notice_preference(lock: RwLock) {
    static SAID: AtomicBool = AtomicBool::new(false);
    // SAFETY: the caller's contract: an initialised lock.
    if unsafe { layout::rwlock_prefers_writers(lock) } {
        sys::notice_once(
            &SAID,
            "a virtual thread waits to write, and readers overtake it, though the lock is to \
             prefer writers (pthread_rwlockattr_setkind_np)",
        );
    }
}

#[libc_fn]
pub unsafe fn pthread_rwlock_unlock(lock: RwLock) -> c_int {
    let result = libcs!();
    // As in `pthread_mutex_unlock`: the lock may be gone.
    let key = key(lock, KeyKind::Lock);
    if parking_lot::any_waiting(key) && result == 0 {
        parking_lot::unpark(key, usize::MAX, READER);
        parking_lot::unpark(key, 1, WRITER);
    }
    result
}
