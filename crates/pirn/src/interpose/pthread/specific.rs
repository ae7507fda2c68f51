//! Thread-specific data. The values are where libc keeps them, in the TCB; the destructors we call
//! ourselves ([`keys`]), so we must know them.

use crate::glibc::symbols::real;
use crate::interpose::virtual_thread;
use crate::vthread::keys;
use core::ffi::{c_int, c_void};
use libc::pthread_key_t;

type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

/// `pthread_key_create`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_key_create(
    key: *mut pthread_key_t,
    destructor: Destructor,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe {
        let result =
            real!(fn pthread_key_create(key: *mut pthread_key_t, destructor: Destructor) -> c_int);
        if result == 0 {
            note_key(*key, destructor);
        }
        result
    }
}

/// `__pthread_key_create`: the same, for the C++ library.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __pthread_key_create(
    key: *mut pthread_key_t,
    destructor: Destructor,
) -> c_int {
    // SAFETY: the caller's contract.
    unsafe { pthread_key_create(key, destructor) }
}

/// Remembers the destructor of a new key.
pub(in super::super) fn note_key(key: pthread_key_t, destructor: Destructor) {
    keys::set_destructor(
        key,
        destructor.map_or(core::ptr::null_mut(), |function| function as *mut c_void),
    );
}

/// `pthread_key_delete`.
#[unsafe(no_mangle)]
pub extern "C" fn pthread_key_delete(key: pthread_key_t) -> c_int {
    keys::set_destructor(key, core::ptr::null_mut());
    // SAFETY: no pointers; libc checks the key.
    unsafe { real!(fn pthread_key_delete(key: pthread_key_t) -> c_int) }
}

/// `pthread_setspecific`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int {
    note_use();
    // SAFETY: the caller's contract.
    unsafe { real!(fn pthread_setspecific(key: pthread_key_t, value: *const c_void) -> c_int) }
}

/// The running thread has thread-specific data.
pub(in super::super) fn note_use() {
    if let Some(core) = virtual_thread() {
        core.keys_used.set(true);
    }
}
