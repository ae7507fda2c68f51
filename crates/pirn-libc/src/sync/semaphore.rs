//! `sem_t`.
//!
//! A virtual thread tries, and waits in the parking lot. `sem_post` may be called in a signal
//! handler: the lot provides for that. Platform threads wait in libc.

use crate::registry::interposed;
use crate::sync::{KeyKind, Until, Waiting, acquire, end_of, key, layout};
use crate::{Time, cancel, virtual_thread};
use core::ffi::{c_int, c_void};
use libc::{clockid_t, sem_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::blocking::parking_lot;
use pirn_rt::glibc::symbols::{Real, real};
use pirn_rt::sys::{self, Errno};
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};

type Semaphore = *mut sem_t;

interposed! {
    family "Semaphores" for Correctness;

    Parks as {
        fn sem_wait(semaphore: Semaphore) -> c_int = wait(semaphore, None, || libcs!());
        fn sem_timedwait(semaphore: Semaphore, time: Time) -> c_int
            = wait(semaphore, Some((libc::CLOCK_REALTIME, time)), || libcs!());
        fn sem_clockwait(semaphore: Semaphore, clock: clockid_t, time: Time) -> c_int
            = wait(semaphore, Some((clock, time)), || libcs!());
    }
    Own by hand { sem_post: "also in signal handlers" }
}

const WAITER: u32 = 16;

/// Returns an error number as C's result.
fn to_c(error: c_int) -> c_int {
    match error {
        0 => 0,
        e => sys::to_c(Err(Errno(e))) as c_int,
    }
}

/// Calls `sem_trywait`. Returns the error number.
unsafe fn attempt(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the caller's contract.
    match unsafe { real!(fn sem_trywait(semaphore: *mut sem_t) -> c_int) } {
        0 => 0,
        _ => sys::errno(),
    }
}

/// Calls libc's function, or, on a virtual thread, takes the semaphore by trying.
unsafe fn wait(semaphore: Semaphore, until: Until, libc_wait: impl FnOnce() -> c_int) -> c_int {
    if virtual_thread().is_none() {
        return libc_wait();
    }
    // SAFETY: the caller's contract.
    let deadline = match unsafe { end_of(until) } {
        Ok(deadline) => deadline,
        Err(e) => return to_c(e), // As in libc, even if the semaphore is free.
    };
    let prepare = || {
        Ok(Waiting {
            reason: WaitReason::at(Kind::Semaphore, semaphore.addr()),
            deadline,
            key: key(semaphore, KeyKind::Semaphore),
            bits: WAITER,
            // SAFETY: the caller's contract.
            unseen: unsafe { layout::semaphore_is_shared(semaphore) },
            interruptible: cancel::interruptible(),
        })
    };
    // SAFETY: the caller's contract.
    let attempt = || unsafe { attempt(semaphore) };
    let acquire = move || to_c(acquire(libc::EAGAIN, attempt, prepare));
    // SAFETY: on a virtual thread, so libc's own function is not called; see `registry`.
    unsafe { cancel::point(acquire, acquire) }
}

static POST: Real = Real::new(c"sem_post");

/// Looks up libc's `sem_post`, which cannot be done in a signal handler.
pub(crate) fn prepare() {
    POST.get();
}

unsafe fn libc_post(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the function's signature; the caller's contract.
    unsafe {
        let post: unsafe extern "C" fn(*mut sem_t) -> c_int =
            core::mem::transmute::<*mut c_void, _>(POST.get());
        post(semaphore)
    }
}

/// May be called in a signal handler.
#[libc_fn]
pub unsafe fn sem_post(semaphore: *mut sem_t) -> c_int {
    let result = libc_post(semaphore);
    // As in `pthread_mutex_unlock`: the semaphore may be gone.
    let key = key(semaphore, KeyKind::Semaphore);
    if parking_lot::any_waiting(key) && result == 0 {
        parking_lot::unpark(key, 1, WAITER);
    }
    result
}
