//! `pthread_rwlock_t`.
//!
//! As with mutexes, two queues and no lost wake-up. Whoever unlocks wakes the virtual threads that
//! want to read, and one that wants to write; all of them try again. Writers that fail are woken by
//! the readers that overtook them, readers by the writer. By default glibc prefers readers; so it
//! is here.

use super::{Kind, Patience, acquire, deadline, key, layout};
use crate::blocking::parking_lot;
use crate::glibc::symbols::real;
use crate::interpose::virtual_thread;
use core::ffi::c_int;
use libc::{clockid_t, pthread_rwlock_t, timespec};

const READER: u32 = 2;
const WRITER: u32 = 4;

/// One locking function: its name, the function to try with, what it waits as, its further
/// parameters and the deadline they stand for.
macro_rules! locks {
    ($name:ident, $attempt:ident, $bit:ident, ($($arg:ident: $ty:ty),*), $deadline:expr) => {
        #[doc = concat!("`", stringify!($name), "`.")]
        ///
        /// # Safety
        /// As for libc's function of this name.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name(lock: *mut pthread_rwlock_t $(, $arg: $ty)*) -> c_int {
            if virtual_thread().is_none() {
                // SAFETY: the caller's contract.
                return unsafe { real!(fn $name(lock: *mut pthread_rwlock_t $(, $arg: $ty)*) -> c_int) };
            }
            // SAFETY: the caller's contract.
            let attempt = || unsafe { real!(fn $attempt(lock: *mut pthread_rwlock_t) -> c_int) };
            // SAFETY: the caller's contract.
            unsafe { wait(lock, $bit, attempt, || $deadline) }
        }
    };
}

locks!(
    pthread_rwlock_rdlock,
    pthread_rwlock_tryrdlock,
    READER,
    (),
    Ok(None)
);
locks!(
    pthread_rwlock_wrlock,
    pthread_rwlock_trywrlock,
    WRITER,
    (),
    Ok(None)
);
locks!(
    pthread_rwlock_timedrdlock,
    pthread_rwlock_tryrdlock,
    READER,
    (time: *const timespec),
    deadline(libc::CLOCK_REALTIME, time)
);
locks!(
    pthread_rwlock_timedwrlock,
    pthread_rwlock_trywrlock,
    WRITER,
    (time: *const timespec),
    deadline(libc::CLOCK_REALTIME, time)
);
locks!(
    pthread_rwlock_clockrdlock,
    pthread_rwlock_tryrdlock,
    READER,
    (clock: clockid_t, time: *const timespec),
    deadline(clock, time)
);
locks!(
    pthread_rwlock_clockwrlock,
    pthread_rwlock_trywrlock,
    WRITER,
    (clock: clockid_t, time: *const timespec),
    deadline(clock, time)
);

/// Locks by trying. The deadline is asked only if there is a need to wait.
unsafe fn wait(
    lock: *mut pthread_rwlock_t,
    bit: u32,
    attempt: impl Fn() -> c_int,
    deadline: impl FnOnce() -> Result<Option<u64>, c_int>,
) -> c_int {
    match attempt() {
        libc::EBUSY => {}
        result => return result,
    }
    // SAFETY: the caller's contract.
    let shared = unsafe {
        if layout::owns_for_writing(lock) {
            return libc::EDEADLK;
        }
        layout::rwlock_is_shared(lock)
    };
    match deadline() {
        Ok(deadline) => acquire(
            key(lock, Kind::Lock),
            bit,
            deadline,
            Patience::new(shared),
            libc::EBUSY,
            attempt,
        ),
        Err(e) => e,
    }
}

/// `pthread_rwlock_unlock`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe { real!(fn pthread_rwlock_unlock(lock: *mut pthread_rwlock_t) -> c_int) };
    // As in `pthread_mutex_unlock`: the lock may be gone, and libc has executed a full barrier.
    let key = key(lock, Kind::Lock);
    if parking_lot::any_waiting(key) && result == 0 {
        parking_lot::unpark(key, usize::MAX, READER);
        parking_lot::unpark(key, 1, WRITER);
    }
    result
}
