//! glibc's own names for locks and thread-specific data, under which its libraries called each
//! other before version 2.34.
//!
//! Unlocking by libc's definition would not wake the virtual threads that wait by ours. Since 2.34
//! new programs cannot be linked with these names, so a linker does not export them from an
//! executable either, unless told to.

use crate::registry::interposed;
use crate::sync::mutex::{Mutex, pthread_mutex_lock, pthread_mutex_trylock, pthread_mutex_unlock};
use crate::sync::once::pthread_once;
use crate::sync::rwlock::{
    RwLock, pthread_rwlock_rdlock, pthread_rwlock_unlock, pthread_rwlock_wrlock,
};
use crate::thread::specific::{pthread_getspecific, pthread_setspecific};
use core::ffi::{c_int, c_void};
use libc::{pthread_key_t, pthread_once_t};

interposed! {
    family "Names of locks from before glibc 2.34" for Correctness,
        cannot "be seen by libraries that use them in an executable linked with glibc 2.34 or \
            later, unless that is linked with `-Wl,--export-dynamic-symbol=__pthread_*`";

    Parks as {
        fn __pthread_mutex_lock(mutex: Mutex) -> c_int = pthread_mutex_lock(mutex);
        fn __pthread_rwlock_rdlock(lock: RwLock) -> c_int = pthread_rwlock_rdlock(lock);
        fn __pthread_rwlock_wrlock(lock: RwLock) -> c_int = pthread_rwlock_wrlock(lock);
    }
    Parks by hand { __pthread_once }
    Own as {
        fn __pthread_mutex_trylock(mutex: Mutex) -> c_int = pthread_mutex_trylock(mutex);
        fn __pthread_mutex_unlock(mutex: Mutex) -> c_int = pthread_mutex_unlock(mutex);
        fn __pthread_rwlock_unlock(lock: RwLock) -> c_int = pthread_rwlock_unlock(lock);
        fn __pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int
            = pthread_setspecific(key, value);
        fn __pthread_getspecific(key: pthread_key_t) -> *mut c_void = pthread_getspecific(key);
    }
}

/// `__pthread_once`. Written by hand, because the routine may unwind.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn __pthread_once(
    control: *mut pthread_once_t,
    routine: Option<unsafe extern "C-unwind" fn()>,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { pthread_once(control, routine) }
}
