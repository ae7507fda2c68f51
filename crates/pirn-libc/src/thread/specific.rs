//! Thread-specific data. libc allocates the keys and has the values of platform threads; [`keys`]
//! has virtual threads' values, except for the key of AddressSanitizer ([`sanitizer`]).

use crate::registry::interposed;
use core::ffi::{c_int, c_void};
use core::ptr;
use libc::pthread_key_t;
use pirn_libc_macros::libc_fn;
use pirn_rt::arch::forward_key;
use pirn_rt::glibc::symbols::real;
use pirn_rt::sanitizer;
use pirn_rt::vthread::keys;

pub type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

interposed! {
    family "Thread-specific data" for Correctness;

    Own by hand { pthread_key_create, pthread_key_delete, pthread_setspecific, pthread_getspecific }
    Own as {
        /// For the C++ library.
        fn __pthread_key_create(key: *mut pthread_key_t, destructor: Destructor) -> c_int
            = pthread_key_create(key, destructor);
    }
}

#[libc_fn]
pub unsafe fn pthread_key_create(key: *mut pthread_key_t, destructor: Destructor) -> c_int {
    let result = libcs!();
    if result == 0 {
        note_key(*key, destructor);
    }
    result
}

/// Notes a new key.
///
/// # Safety
/// libc has created the key, with this destructor.
pub(crate) unsafe fn note_key(key: pthread_key_t, destructor: Destructor) {
    let destructor = destructor.map_or(ptr::null_mut(), |function| function as *mut c_void);
    if !sanitizer::note_key(key, destructor) {
        // SAFETY: the caller's contract.
        unsafe { keys::created(key, destructor) };
    }
}

#[libc_fn]
pub fn pthread_key_delete(key: pthread_key_t) -> c_int {
    keys::deleted(key);
    // SAFETY: no pointers; libc checks the key.
    unsafe { libcs!() }
}

#[libc_fn]
pub unsafe fn pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int {
    // SAFETY: the caller's contract: the value suits the key's destructor.
    match unsafe { keys::set(key, value.cast_mut()) } {
        Some(result) => result,
        None => libcs!(),
    }
}

forward_key! {
    /// `pthread_getspecific`.
    pthread_getspecific(key sanitizer::KEY) => sanitizer::GETSPECIFIC, else getspecific
}

extern "C" fn getspecific(key: pthread_key_t) -> *mut c_void {
    match keys::get(key) {
        Some(value) => value,
        // SAFETY: no pointers; libc checks the key.
        None => unsafe { real!(fn pthread_getspecific(key: pthread_key_t) -> *mut c_void) },
    }
}
