//! The functions of `pirn.h`, for what POSIX has no function for.
//!
//! Parking works between threads of both kinds. The permit is a word in the TLS block of each
//! thread, at the same distance from the thread pointer in all, since this code is part of the
//! program from its start. It has the states and transitions of `std`'s parker:
//!
//! ```text
//!            park                    park, of a thread that
//!   PERMIT ---------> EMPTY <-----+  finds PERMIT when it wakes
//!     ^  ^              | park    |
//!     |  |  unpark      v         |
//!     |  +---------- PARKED       |
//!     +--- unpark ------+---------+
//! ```

use crate::{Threads, chosen, create};
use core::ffi::{c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicU32, Ordering};
use libc::{pthread_attr_t, pthread_t, timespec};
use pirn_libc::identity::is_virtual;
use pirn_libc::posix::{self, PosixRoutine, Routine};
use pirn_libc::thread::lifecycle;
use pirn_rt::blocking::futex;
use pirn_rt::glibc::tls;

const EMPTY: u32 = 0;
const PERMIT: u32 = 1;
const PARKED: u32 = u32::MAX;

thread_local! {
    static WORD: AtomicU32 = const { AtomicU32::new(EMPTY) };
}

/// `pirn_is_virtual`: returns whether a thread is virtual, as 1 or 0.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_is_virtual(thread: pthread_t) -> c_int {
    is_virtual(thread).into()
}

/// `pirn_create_virtual`: `pthread_create` of a virtual thread. `ENOTSUP` if it would have to be a
/// platform thread.
///
/// # Safety
/// As for `pthread_create`.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_create_virtual(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: PosixRoutine,
    argument: *mut c_void,
) -> c_int {
    posix::install(&Threads); // Its `pthread_t` is known whatever the settings say.
    // SAFETY: the caller's contract.
    let made = unsafe { create::create(thread, attributes, Routine::Posix(start), argument) };
    made.unwrap_or(libc::ENOTSUP)
}

/// `pirn_create_platform`: `pthread_create` of a platform thread.
///
/// # Safety
/// As for `pthread_create`.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_create_platform(
    thread: *mut pthread_t,
    attributes: *const pthread_attr_t,
    start: lifecycle::Start,
    argument: *mut c_void,
) -> c_int {
    chosen::by_caller(|| {
        // SAFETY: the caller's contract.
        unsafe { lifecycle::pthread_create(thread, attributes, start, argument) }
    })
}

/// `pirn_park`: waits until there is a permit, and takes it.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_park() {
    // SAFETY: no deadline.
    unsafe { pirn_park_until(ptr::null()) };
}

/// `pirn_park_until`: does what `pirn_park` does, until a time of `CLOCK_MONOTONIC` at most.
/// Returns 0 or `ETIMEDOUT`.
///
/// # Safety
/// `deadline` is null or valid.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_park_until(deadline: *const timespec) -> c_int {
    let word = WORD.with(AtomicU32::as_ptr);
    // SAFETY: the word of the running thread, which lives as long as the thread, on whichever
    // carrier.
    let permit = unsafe { AtomicU32::from_ptr(word) };
    // Acquire, here and below: pairs with the Release in `pirn_unpark`.
    // PERMIT becomes EMPTY, and EMPTY becomes PARKED.
    if permit.fetch_sub(1, Ordering::Acquire) == PERMIT {
        return 0;
    }
    let operation = libc::FUTEX_WAIT_BITSET | libc::FUTEX_PRIVATE_FLAG;
    let (state, bits) = (PARKED as usize, u32::MAX as usize);
    let wait = [
        word as usize,
        operation as usize,
        state,
        deadline as usize,
        0,
        bits,
    ];
    loop {
        // SAFETY: as for the word above, and the caller's contract.
        let waited = unsafe { futex::futex(wait, futex::wake_op) };
        let (acquire, relaxed) = (Ordering::Acquire, Ordering::Relaxed);
        if permit
            .compare_exchange(PERMIT, EMPTY, acquire, relaxed)
            .is_ok()
        {
            return 0;
        }
        // Otherwise it was woken for another reason, or the state had changed.
        if let Err(error @ (libc::ETIMEDOUT | libc::EINVAL)) = waited.map_err(|error| error.0) {
            let is_permitted = permit.swap(EMPTY, Ordering::Acquire) == PERMIT;
            return if is_permitted { 0 } else { error };
        }
    }
}

/// `pirn_unpark`: gives a thread a permit, unless it has one, and wakes it if it waits for that.
///
/// # Safety
/// The thread exists: it has not been joined, nor ended after it was detached.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_unpark(thread: pthread_t) {
    let word = tls::place_of(&WORD, tls::template().tp_of(thread as usize));
    // SAFETY: the word of that thread; see the head of the file.
    let permit = unsafe { &*word };
    // Release: pairs with the Acquire in `pirn_park_until`.
    if permit.swap(PERMIT, Ordering::Release) == PARKED {
        let operation = libc::FUTEX_WAKE | libc::FUTEX_PRIVATE_FLAG;
        // SAFETY: a wake looks at no memory.
        let _ = unsafe {
            futex::futex(
                [word.addr(), operation as usize, 1, 0, 0, 0],
                futex::wake_op,
            )
        };
    }
}
