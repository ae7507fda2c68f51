//! `pthread_rwlock_t`.
//!
//! As with mutexes, there are two queues, and no wake-up is lost. Unlocking wakes all virtual
//! threads that want to read, and one that wants to write; all of them try again. If a writer
//! fails, the readers that overtook it wake it; if readers fail, the writer wakes them. As in glibc
//! by default, readers are preferred.

use crate::registry::interposed;
use crate::sync::{KeyKind, Waiting, acquire, deadline, key, layout};
use crate::{Time, virtual_thread};
use core::ffi::c_int;
use libc::{clockid_t, pthread_rwlock_t};
use pirn_rt::blocking::parking_lot;
use pirn_rt::glibc::symbols::real;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::awaited::{Awaited, Kind};

pub(crate) type RwLock = *mut pthread_rwlock_t;
const REALTIME: clockid_t = libc::CLOCK_REALTIME;

interposed! {
    family "Locks for reading and writing" for Correctness,
        cannot "prefer writers, whatever the attributes say";

    Parks as {
        fn pthread_rwlock_rdlock(lock: RwLock) -> c_int
            = lock_as(READER, lock, || real!(fn pthread_rwlock_rdlock(lock: RwLock) -> c_int), || Ok(Deadline::NEVER));
        fn pthread_rwlock_wrlock(lock: RwLock) -> c_int
            = lock_as(WRITER, lock, || real!(fn pthread_rwlock_wrlock(lock: RwLock) -> c_int), || Ok(Deadline::NEVER));
        fn pthread_rwlock_timedrdlock(lock: RwLock, time: Time) -> c_int
            = lock_as(
                READER,
                lock,
                || real!(fn pthread_rwlock_timedrdlock(lock: RwLock, time: Time) -> c_int),
                || deadline(REALTIME, time),
            );
        fn pthread_rwlock_timedwrlock(lock: RwLock, time: Time) -> c_int
            = lock_as(
                WRITER,
                lock,
                || real!(fn pthread_rwlock_timedwrlock(lock: RwLock, time: Time) -> c_int),
                || deadline(REALTIME, time),
            );
        fn pthread_rwlock_clockrdlock(lock: RwLock, clock: clockid_t, time: Time) -> c_int
            = lock_as(
                READER,
                lock,
                || real!(fn pthread_rwlock_clockrdlock(lock: RwLock, clock: clockid_t, time: Time) -> c_int),
                || deadline(clock, time),
            );
        fn pthread_rwlock_clockwrlock(lock: RwLock, clock: clockid_t, time: Time) -> c_int
            = lock_as(
                WRITER,
                lock,
                || real!(fn pthread_rwlock_clockwrlock(lock: RwLock, clock: clockid_t, time: Time) -> c_int),
                || deadline(clock, time),
            );
    }
    Own by hand { pthread_rwlock_unlock }
}

const READER: u32 = 2;
const WRITER: u32 = 4;

/// Calls libc's function, or, on a virtual thread, locks by trying.
unsafe fn lock_as(
    kind: u32,
    lock: RwLock,
    libc_lock: impl FnOnce() -> c_int,
    deadline: impl FnOnce() -> Result<Deadline, c_int>,
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
            _ => Kind::RwLockToWrite,
        };
        Ok(Waiting {
            awaited: Awaited::at(to_do, lock.addr()),
            key: key(lock, KeyKind::Lock),
            bits: kind,
            unseen: layout::rwlock_is_shared(lock),
            hearing: None,
        })
    };
    acquire(libc::EBUSY, attempt, prepare, deadline)
}

/// `pthread_rwlock_unlock`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_unlock(lock: RwLock) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe { real!(fn pthread_rwlock_unlock(lock: RwLock) -> c_int) };
    // As in `pthread_mutex_unlock`: the lock may be gone, and libc has executed a full barrier.
    let key = key(lock, KeyKind::Lock);
    if parking_lot::any_waiting(key) && result == 0 {
        parking_lot::unpark(key, usize::MAX, READER);
        parking_lot::unpark(key, 1, WRITER);
    }
    result
}
