//! `pthread_atfork` as a function of the C library.
//!
//! Programs have one of their own, which calls `__register_atfork`: that is interposed, so that
//! Pirn's handler is the first in the child. Libraries that ask for the function by a weak symbol
//! (tcmalloc) get one of libc's, which old programs used: it calls libc's own `__register_atfork`.
//! Here they find this one.

use core::ffi::{c_int, c_void};
use core::ptr;

type Handler = Option<unsafe extern "C" fn()>;

/// `pthread_atfork`. As with libc's, the handlers stay when the library that registers them is
/// closed.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_atfork(
    prepare: Handler,
    parent: Handler,
    child: Handler,
) -> c_int {
    unsafe extern "C" {
        fn __register_atfork(
            prepare: Handler,
            parent: Handler,
            child: Handler,
            object: *mut c_void,
        ) -> c_int;
    }
    // SAFETY: the caller's contract; of no library.
    unsafe { __register_atfork(prepare, parent, child, ptr::null_mut()) }
}
