//! Other names for the functions of `pthread.h`: C11's `threads.h`, and glibc's own names.
//!
//! glibc implements `threads.h` by calling the pthread functions on the same objects, inside libc;
//! so does this file.
//!
//! Before version 2.34, glibc's libraries called each other by own names for locks and
//! thread-specific data. An unlock by libc's definition would not wake the virtual threads that
//! wait by ours. Since 2.34 new programs cannot be linked with these names, so a linker does not
//! export them from an executable either, unless told to.

use crate::forward::on_carrier;
use crate::posix::{self, C11Routine, Routine};
use crate::registry::interposed;
use crate::sync::cond::{
    Cond, pthread_cond_broadcast, pthread_cond_destroy, pthread_cond_signal,
    pthread_cond_timedwait, pthread_cond_wait,
};
use crate::sync::mutex::{
    Mutex, pthread_mutex_lock, pthread_mutex_timedlock, pthread_mutex_trylock, pthread_mutex_unlock,
};
use crate::sync::once::{OnceRoutine, pthread_once};
use crate::sync::rwlock::{
    RwLock, pthread_rwlock_rdlock, pthread_rwlock_unlock, pthread_rwlock_wrlock,
};
use crate::thread::lifecycle::pthread_detach;
use crate::thread::specific::Destructor;
use crate::thread::{note_key, pthread_exit, pthread_getspecific, pthread_join};
use crate::thread::{pthread_key_delete, pthread_setspecific};
use crate::{Time, time};
use core::ffi::{c_int, c_void};
use libc::{pthread_key_t, pthread_once_t, pthread_t, timespec};
use pirn_libc_macros::libc_fn;

interposed! {
    /// C11's functions.
    C11:
    family "C11 threads" for Correctness, cannot "join or end a virtual thread";

    Parks as {
        fn mtx_lock(mutex: Mutex) -> c_int = result(pthread_mutex_lock(mutex));
        fn mtx_timedlock(mutex: Mutex, time: Time) -> c_int
            = result(pthread_mutex_timedlock(mutex, time));
        fn cnd_wait(cond: Cond, mutex: Mutex) -> c_int = result(pthread_cond_wait(cond, mutex));
        fn cnd_timedwait(cond: Cond, mutex: Mutex, time: Time) -> c_int
            = result(pthread_cond_timedwait(cond, mutex, time));
        fn cnd_destroy(cond: Cond) -> () = { pthread_cond_destroy(cond); };
        fn call_once(control: *mut pthread_once_t, routine: OnceRoutine) -> ()
            = { pthread_once(control, routine); };
    }
    Parks by hand { thrd_join, thrd_sleep }
    Own as {
        fn mtx_unlock(mutex: Mutex) -> c_int = result(pthread_mutex_unlock(mutex));
        fn cnd_signal(cond: Cond) -> c_int = result(pthread_cond_signal(cond));
        fn cnd_broadcast(cond: Cond) -> c_int = result(pthread_cond_broadcast(cond));
        fn thrd_yield() -> () = { time::sched_yield(); };
        fn thrd_detach(thread: pthread_t) -> c_int = result(pthread_detach(thread));
        fn tss_delete(key: pthread_key_t) -> () = { pthread_key_delete(key); };
        fn tss_set(key: pthread_key_t, value: *mut c_void) -> c_int
            = result(pthread_setspecific(key, value));
        fn tss_get(key: pthread_key_t) -> *mut c_void = pthread_getspecific(key);
    }
    Own by hand { tss_create }
    Carrier by hand { thrd_create: "makes a platform thread" }
    Refuses by hand { thrd_exit: "ends the process: a virtual thread ends by returning" }
}

interposed! {
    /// The names from before glibc 2.34.
    OLD_NAMES:
    family "Names of locks from before glibc 2.34" for Correctness,
        cannot "be seen by libraries that use them in an executable linked with glibc 2.34 or \
            later, unless that is linked with `-Wl,--export-dynamic-symbol=__pthread_*`";

    Parks as {
        fn __pthread_mutex_lock(mutex: Mutex) -> c_int = pthread_mutex_lock(mutex);
        fn __pthread_rwlock_rdlock(lock: RwLock) -> c_int = pthread_rwlock_rdlock(lock);
        fn __pthread_rwlock_wrlock(lock: RwLock) -> c_int = pthread_rwlock_wrlock(lock);
        fn __pthread_once(control: *mut pthread_once_t, routine: OnceRoutine) -> c_int
            = pthread_once(control, routine);
    }
    Own as {
        fn __pthread_mutex_trylock(mutex: Mutex) -> c_int = pthread_mutex_trylock(mutex);
        fn __pthread_mutex_unlock(mutex: Mutex) -> c_int = pthread_mutex_unlock(mutex);
        fn __pthread_rwlock_unlock(lock: RwLock) -> c_int = pthread_rwlock_unlock(lock);
        fn __pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int
            = pthread_setspecific(key, value);
        fn __pthread_getspecific(key: pthread_key_t) -> *mut c_void = pthread_getspecific(key);
    }
}

/// `thrd_success` and the other results.
const BUSY: c_int = 1;
const ERROR: c_int = 2;
const NO_MEMORY: c_int = 3;
const TIMED_OUT: c_int = 4;

/// Returns a pthread function's result in C11's terms.
fn result(error: c_int) -> c_int {
    match error {
        0 => 0,
        libc::EBUSY => BUSY,
        libc::ENOMEM => NO_MEMORY,
        libc::ETIMEDOUT => TIMED_OUT,
        _ => ERROR,
    }
}

type ThrdStart = extern "C" fn(*mut c_void) -> c_int;

#[libc_fn]
pub unsafe fn thrd_create(
    thread: *mut pthread_t,
    start: ThrdStart,
    argument: *mut c_void,
) -> c_int {
    // SAFETY: the caller's contract; the same type, but that the routine may be unwound.
    let made = unsafe {
        let routine = Routine::C11(core::mem::transmute::<ThrdStart, C11Routine>(start));
        posix::create(thread, core::ptr::null(), routine, argument)
    };
    if let Some(error) = made {
        return result(error);
    }
    on_carrier(|| libcs!())
}

#[libc_fn]
pub unsafe fn thrd_join(thread: pthread_t, value: *mut c_int) -> c_int {
    let mut returned: *mut c_void = core::ptr::null_mut();
    let error = pthread_join(thread, &mut returned);
    if error == 0 && !value.is_null() {
        // glibc passes the number through the pointer.
        *value = returned as usize as c_int;
    }
    result(error)
}

#[libc_fn]
pub unsafe fn thrd_exit(value: c_int) -> ! {
    pthread_exit(value as isize as *mut c_void)
}

/// -1 if a signal ended it, -2 for other errors.
#[libc_fn]
pub unsafe fn thrd_sleep(duration: *const timespec, remaining: *mut timespec) -> c_int {
    match time::clock_nanosleep(libc::CLOCK_REALTIME, 0, duration, remaining) {
        0 => 0,
        libc::EINTR => -1,
        _ => -2,
    }
}

#[libc_fn]
pub unsafe fn tss_create(key: *mut pthread_key_t, destructor: Destructor) -> c_int {
    let result = libcs!();
    if result == 0 {
        note_key(*key, destructor);
    }
    result
}
