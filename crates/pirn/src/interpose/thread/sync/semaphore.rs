//! `sem_t`.
//!
//! A virtual thread waits in the parking lot. `sem_post` may be called in a signal handler, which
//! may have interrupted code that holds a lock of the lot or changes a run queue. So `sem_post`
//! touches neither. It marks the lot's bucket, in an atomic bit, and wakes a platform thread of the
//! runtime, the *postman*. The postman takes the semaphore on behalf of the threads that wait
//! there, and wakes them. Platform threads wait in libc and are not concerned.

use super::{KeyKind, Waiting, acquire, deadline, key, layout};
use crate::blocking::parking_lot::{self, BUCKETS};
use crate::glibc::symbols::Real;
use crate::glibc::symbols::real;
use crate::interpose::Time;
use crate::interpose::registry::interposed;
use crate::interpose::virtual_thread;
use crate::sys::{self, Errno};
use crate::time::Deadline;
use core::ffi::{c_int, c_void};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use libc::{clockid_t, sem_t};

type Semaphore = *mut sem_t;

interposed! {
    family "Semaphores" for Correctness;

    Parks as {
        fn sem_wait(semaphore: Semaphore) -> c_int
            = wait(semaphore, || real!(fn sem_wait(semaphore: Semaphore) -> c_int), || Ok(Deadline::NEVER));
        fn sem_timedwait(semaphore: Semaphore, time: Time) -> c_int
            = wait(
                semaphore,
                || real!(fn sem_timedwait(semaphore: Semaphore, time: Time) -> c_int),
                || deadline(libc::CLOCK_REALTIME, time),
            );
        fn sem_clockwait(semaphore: Semaphore, clock: clockid_t, time: Time) -> c_int
            = wait(
                semaphore,
                || real!(fn sem_clockwait(semaphore: Semaphore, clock: clockid_t, time: Time) -> c_int),
                || deadline(clock, time),
            );
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
unsafe fn wait(
    semaphore: Semaphore,
    libc_wait: impl FnOnce() -> c_int,
    deadline: impl FnOnce() -> Result<Deadline, c_int>,
) -> c_int {
    if virtual_thread().is_none() {
        return libc_wait();
    }
    let deadline = match deadline() {
        Ok(deadline) => deadline,
        Err(e) => return to_c(e), // As in libc, even if the semaphore is free.
    };
    let prepare = || {
        postman::hire();
        Ok(Waiting {
            key: key(semaphore, KeyKind::Semaphore),
            bits: WAITER,
            // SAFETY: the caller's contract.
            unseen: unsafe { layout::semaphore_is_shared(semaphore) },
            delivered: true,
        })
    };
    // SAFETY: the caller's contract.
    let attempt = || unsafe { attempt(semaphore) };
    to_c(acquire(libc::EAGAIN, attempt, prepare, || Ok(deadline)))
}

static POST: Real = Real::new(c"sem_post");

/// Looks up libc's `sem_post`, which cannot be done in a signal handler.
pub(in crate::interpose) fn prepare() {
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

/// `sem_post`. May be called in a signal handler.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn sem_post(semaphore: *mut sem_t) -> c_int {
    // SAFETY: the caller's contract.
    let result = unsafe { libc_post(semaphore) };
    // As in `pthread_mutex_unlock`: the semaphore may be gone, and libc has executed a full
    // barrier.
    let key = key(semaphore, KeyKind::Semaphore);
    if parking_lot::any_waiting(key) && result == 0 {
        postman::call(parking_lot::bucket_of(key));
    }
    result
}

/// See the module's documentation.
mod postman {
    use super::{
        AtomicBool, AtomicU32, AtomicU64, BUCKETS, KeyKind, Ordering, WAITER, attempt, libc_post,
        parking_lot, sys,
    };

    static MARKED: [AtomicU64; BUCKETS / 64] = [const { AtomicU64::new(0) }; BUCKETS / 64];
    /// The number of calls.
    static CALLS: AtomicU32 = AtomicU32::new(0);
    static HIRED: AtomicBool = AtomicBool::new(false);

    /// Makes sure there is a postman.
    pub(in crate::interpose) fn hire() {
        // Relaxed: the thread needs nothing from the one that started it.
        if HIRED.load(Ordering::Relaxed) || HIRED.swap(true, Ordering::Relaxed) {
            return;
        }
        let spawned = std::thread::Builder::new()
            .name("pirn-postman".into())
            .stack_size(64 << 10)
            .spawn(run);
        if let Err(e) = spawned {
            sys::fatal(&["no thread to serve semaphores: ", &e.to_string()]);
        }
    }

    /// Makes the postman look after a bucket. Async-signal-safe.
    pub(in crate::interpose) fn call(bucket: usize) {
        // Release: pairs with the Acquire of the swap below: the semaphore has been posted.
        MARKED[bucket / 64].fetch_or(1 << (bucket % 64), Ordering::Release);
        // Release: the mark is visible to a thread that sees the new count.
        CALLS.fetch_add(1, Ordering::Release);
        sys::futex_wake(&CALLS, 1);
    }

    fn run() {
        loop {
            let seen = CALLS.load(Ordering::Acquire); // Acquire: pairs with the Release in `call`.
            for (i, marks) in MARKED.iter().enumerate() {
                if marks.load(Ordering::Relaxed) == 0 {
                    continue; // Relaxed: ordered by CALLS.
                }
                let mut marks = marks.swap(0, Ordering::Acquire);
                while marks != 0 {
                    deliver(i * 64 + marks.trailing_zeros() as usize);
                    marks &= marks - 1;
                }
            }
            let _ = sys::futex_wait(&CALLS, seen, crate::time::Deadline::NEVER);
        }
    }

    /// Takes semaphores for the threads that wait in a bucket.
    fn deliver(bucket: usize) {
        let semaphore = |key: usize| (key & !3) as *mut libc::sem_t;
        let is_one = |key: usize| key & 3 == KeyKind::Semaphore as usize;
        parking_lot::serve(
            bucket,
            WAITER,
            // SAFETY: somebody waits for the semaphore, so it is alive.
            |key| is_one(key) && unsafe { attempt(semaphore(key)) } == 0,
            |key| {
                // SAFETY: as above: a thread that timed out leaves the list, under its lock, before
                // it returns.
                unsafe { libc_post(semaphore(key)) };
            },
        );
    }
}
