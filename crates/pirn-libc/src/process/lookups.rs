//! Looking things up in loaded libraries: `dlsym` and its kin, and a destructor's library.
//!
//! In these functions libc itself takes the linker's lock of loading, which another thread holds
//! while a library's initialisers run, and these may park ([`linker`](crate::process::linker)).

use crate::process::linker::wait_while_loading;
use crate::registry::interposed;
use core::ffi::{c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering};
use pirn_rt::arch::forward_after;
use pirn_rt::glibc::symbols::real;

type Destructor = *const c_void;
type Found = *mut libc::Dl_info;

interposed! {
    family "Looking things up in libraries" for Scaling,
        cannot "park in `dlvsym` while another thread's initialisers run";

    Parks by hand { dlsym: "while another thread opens a library" }
    Parks as {
        fn dladdr(address: *const c_void, found: Found) -> c_int = {
            wait_while_loading(c"dladdr");
            real!(fn dladdr(address: *const c_void, found: Found) -> c_int)
        };
        fn dladdr1(address: *const c_void, found: Found, more: *mut *mut c_void, flags: c_int)
            -> c_int = {
            wait_while_loading(c"dladdr1");
            real!(fn dladdr1(
                address: *const c_void, found: Found, more: *mut *mut c_void, flags: c_int,
            ) -> c_int)
        };
        fn dlinfo(handle: *mut c_void, request: c_int, found: *mut c_void) -> c_int = {
            wait_while_loading(c"dlinfo");
            real!(fn dlinfo(handle: *mut c_void, request: c_int, found: *mut c_void) -> c_int)
        };
        fn __cxa_thread_atexit_impl(
            destructor: Destructor, object: *mut c_void, library: *mut c_void,
        ) -> c_int = {
            wait_while_loading(c"__cxa_thread_atexit_impl");
            real!(fn __cxa_thread_atexit_impl(
                destructor: Destructor, object: *mut c_void, library: *mut c_void,
            ) -> c_int)
        };
    }
}

forward_after! {
    /// `dlsym`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    dlsym, before_dlsym
}

/// Waits until `dlsym` would not. Returns the address of libc's.
extern "C" fn before_dlsym() -> *mut c_void {
    static REAL: AtomicPtr<c_void> = AtomicPtr::new(core::ptr::null_mut());
    wait_while_loading(c"dlsym");
    // Relaxed: a code address needs no ordering, and a second lookup gives the same answer.
    let known = REAL.load(Ordering::Relaxed);
    if !known.is_null() {
        return known;
    }
    // The first version of x86-64, which all have. `dlsym` cannot be asked.
    let (name, version): (*const c_char, _) = (c"dlsym".as_ptr(), c"GLIBC_2.2.5".as_ptr());
    // SAFETY: valid C strings.
    let found = unsafe { libc::dlvsym(libc::RTLD_NEXT, name, version) };
    if found.is_null() {
        pirn_rt::sys::fatal(&["the C library has no `dlsym`"]);
    }
    REAL.store(found, Ordering::Relaxed);
    found
}
