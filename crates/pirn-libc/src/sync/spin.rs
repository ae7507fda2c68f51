//! `pthread_spinlock_t`.
//!
//! A virtual thread spins for a moment. Then it waits in the parking lot, since the holder may be
//! waiting for this very carrier. libc unlocks by a plain store, so an unlocking thread may not see
//! the waiter, which looks again after a millisecond: no barrier for those who never wait.

use crate::registry::interposed;
use crate::sync::{lock_by_trying, released};
use crate::virtual_thread;
use core::ffi::c_int;
use libc::pthread_spinlock_t;
use pirn_rt::glibc::symbols::real;

interposed! {
    family "Spinlocks" for Scaling;

    Parks by hand { pthread_spin_lock: "spins first" }
    Own by hand { pthread_spin_unlock }
    Own as {
        /// In libc, the same function as the one that unlocks.
        fn pthread_spin_init(lock: *mut pthread_spinlock_t, shared: c_int) -> c_int
            = real!(fn pthread_spin_init(lock: *mut pthread_spinlock_t, shared: c_int) -> c_int);
    }
}

/// Attempts before the thread waits.
const SPINS: u32 = 100;

/// `pthread_spin_lock`: a virtual thread spins for a moment, then parks between attempts.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int {
    if virtual_thread().is_none() {
        // SAFETY: the caller's contract.
        return unsafe { real!(fn pthread_spin_lock(lock: *mut pthread_spinlock_t) -> c_int) };
    }
    // SAFETY: the caller's contract.
    let attempt =
        || unsafe { real!(fn pthread_spin_trylock(lock: *mut pthread_spinlock_t) -> c_int) == 0 };
    for _ in 0..SPINS {
        if attempt() {
            return 0;
        }
        core::hint::spin_loop();
    }
    lock_by_trying(c"pthread_spin_lock", lock, attempt);
    0
}

/// `pthread_spin_unlock`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_spin_unlock(lock: *mut pthread_spinlock_t) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe { real!(fn pthread_spin_unlock(lock: *mut pthread_spinlock_t) -> c_int) };
    released(lock);
    result
}
