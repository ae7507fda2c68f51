//! C11's `threads.h`. glibc implements it by calling the pthread functions on the same objects,
//! inside libc; so does this file.

use crate::forward::on_carrier;
use crate::posix::{self, C11Routine, Routine};
use crate::registry::interposed;
use crate::sync::{cond, mutex, once};
use crate::thread::specific::Destructor;
use crate::{thread, time};
use core::ffi::{c_int, c_void};
use libc::{pthread_cond_t, pthread_key_t, pthread_mutex_t, pthread_once_t, pthread_t, timespec};
use pirn_rt::glibc::symbols::real;

interposed! {
    family "C11 threads" for Correctness, cannot "join or end a virtual thread";

    Parks by hand {
        mtx_lock, mtx_timedlock, cnd_wait, cnd_timedwait, cnd_destroy, call_once, thrd_join,
        thrd_sleep,
    }
    Own by hand {
        mtx_unlock, cnd_signal, cnd_broadcast, thrd_yield, thrd_detach, tss_create, tss_delete, tss_set, tss_get,
    }
    Carrier by hand { thrd_create: "makes a platform thread" }
    Refuses by hand { thrd_exit: "ends the process: a virtual thread ends by returning" }
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

/// `mtx_lock`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_lock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { mutex::pthread_mutex_lock(mutex) })
}

/// `mtx_timedlock`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_timedlock(
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { mutex::pthread_mutex_timedlock(mutex, time) })
}

/// `mtx_unlock`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mtx_unlock(mutex: *mut pthread_mutex_t) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { mutex::pthread_mutex_unlock(mutex) })
}

/// `cnd_wait`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_wait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { cond::pthread_cond_wait(cond, mutex) })
}

/// `cnd_timedwait`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn cnd_timedwait(
    cond: *mut pthread_cond_t,
    mutex: *mut pthread_mutex_t,
    time: *const timespec,
) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { cond::pthread_cond_timedwait(cond, mutex, time) })
}

/// `cnd_signal`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnd_signal(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { cond::pthread_cond_signal(cond) })
}

/// `cnd_broadcast`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnd_broadcast(cond: *mut pthread_cond_t) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { cond::pthread_cond_broadcast(cond) })
}

/// `cnd_destroy`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn cnd_destroy(cond: *mut pthread_cond_t) {
    // SAFETY: the caller's contract.
    unsafe { cond::pthread_cond_destroy(cond) };
}

/// `call_once`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn call_once(
    control: *mut pthread_once_t,
    routine: Option<unsafe extern "C-unwind" fn()>,
) {
    // SAFETY: the caller's contract.
    unsafe { once::pthread_once(control, routine) };
}

type ThrdStart = extern "C" fn(*mut c_void) -> c_int;

/// `thrd_create`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_create(
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
    // SAFETY: the caller's contract.
    on_carrier(|| unsafe {
        real!(fn thrd_create(thread: *mut pthread_t, start: ThrdStart, argument: *mut c_void) -> c_int)
    })
}

/// `thrd_join`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn thrd_join(thread: pthread_t, value: *mut c_int) -> c_int {
    let mut returned: *mut c_void = core::ptr::null_mut();
    // SAFETY: the caller's contract.
    let error = unsafe { thread::pthread_join(thread, &mut returned) };
    if error == 0 && !value.is_null() {
        // SAFETY: the caller's contract. glibc passes the number through the pointer.
        unsafe { *value = returned as usize as c_int };
    }
    result(error)
}

/// `thrd_detach`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn thrd_detach(thread: pthread_t) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { thread::lifecycle::pthread_detach(thread) })
}

/// `thrd_exit`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn thrd_exit(value: c_int) -> ! {
    // SAFETY: the caller's contract.
    unsafe { thread::pthread_exit(value as isize as *mut c_void) }
}

/// `thrd_sleep`: -1 if a signal ended it, -2 for other errors.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn thrd_sleep(
    duration: *const timespec,
    remaining: *mut timespec,
) -> c_int {
    // SAFETY: the caller's contract.
    match unsafe { time::clock_nanosleep(libc::CLOCK_REALTIME, 0, duration, remaining) } {
        0 => 0,
        libc::EINTR => -1,
        _ => -2,
    }
}

/// `thrd_yield`.
#[unsafe(no_mangle)]
pub extern "C" fn thrd_yield() {
    time::sched_yield();
}

/// `tss_create`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tss_create(key: *mut pthread_key_t, destructor: Destructor) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let result = real!(fn tss_create(key: *mut pthread_key_t, destructor: Destructor) -> c_int);
        if result == 0 {
            thread::note_key(*key, destructor);
        }
        result
    }
}

/// `tss_delete`.
#[unsafe(no_mangle)]
pub extern "C" fn tss_delete(key: pthread_key_t) {
    thread::pthread_key_delete(key);
}

/// `tss_set`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tss_set(key: pthread_key_t, value: *mut c_void) -> c_int {
    // SAFETY: the caller's contract.
    result(unsafe { thread::pthread_setspecific(key, value) })
}

/// `tss_get`.
#[unsafe(no_mangle)]
pub extern "C" fn tss_get(key: pthread_key_t) -> *mut c_void {
    thread::pthread_getspecific(key)
}
