//! `dlfcn.h`, `link.h`: closing libraries, looking at those that are loaded, and looking things up
//! in them.
//!
//! `dlopen` is libc's: the linker itself calls Pirn where it locks, and before it calls
//! initialisers ([`linker`]).
//!
//! Libraries that libc closes itself (`iconv`'s and the name service's modules) are noticed when
//! the program opens or closes another one.
//!
//! To look something up, libc itself takes the linker's lock of loading, which another thread holds
//! while a library's initialisers run, and these may park.

use crate::process::linker::{DLSYM, ObjectsLocked, wait_while_loading};
use crate::registry::interposed;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::Relaxed;
use pirn_libc_macros::libc_fn;
use pirn_rt::arch::{self, call_as_if_from, forward};
use pirn_rt::glibc::{late, objects};
use pirn_rt::sched::preempt;
use pirn_rt::stack::region;

type Destructor = *const c_void;
type Found = *mut libc::Dl_info;

interposed! {
    family "Libraries" for Correctness;

    Own as {
        fn dlclose(handle: *mut c_void) -> c_int = {
            let result = libcs!();
            // A lack of room has been reported when the library was opened.
            let _ = catch_up();
            result
        };
    }
    Parks by hand { dl_iterate_phdr: "for the linker's lock; not preempted meanwhile" }
}

interposed! {
    /// The functions that look something up.
    LOOKUPS:
    family "Looking things up in libraries" for Scaling,
        cannot "park in `dlvsym` while another thread's initialisers run";

    Parks by hand { dlsym: "while another thread opens a library" }
    Parks as {
        fn dladdr(address: *const c_void, found: Found) -> c_int = {
            wait_while_loading(c"dladdr");
            libcs!()
        };
        fn dladdr1(address: *const c_void, found: Found, more: *mut *mut c_void, flags: c_int)
            -> c_int = {
            wait_while_loading(c"dladdr1");
            libcs!()
        };
        fn dlinfo(handle: *mut c_void, request: c_int, found: *mut c_void) -> c_int = {
            wait_while_loading(c"dlinfo");
            libcs!()
        };
        fn __cxa_thread_atexit_impl(
            destructor: Destructor, object: *mut c_void, library: *mut c_void,
        ) -> c_int = {
            wait_while_loading(c"__cxa_thread_atexit_impl");
            libcs!()
        };
    }
}

/// The linker's lock is held while the callback runs.
#[libc_fn]
pub unsafe fn dl_iterate_phdr(callback: *const c_void, data: *mut c_void) -> c_int {
    let locked = ObjectsLocked::by_parking();
    let result = preempt::without(|| libcs!());
    drop(locked);
    result
}

/// Calls libc's `function` on behalf of the library that `caller` is an address in.
///
/// # Safety
/// As for the function.
pub(crate) unsafe fn call_from(
    caller: usize,
    function: usize,
    arguments: [usize; 3],
) -> *mut c_void {
    // SAFETY: the caller's contract; an instruction of that library.
    unsafe {
        match find_return(caller) {
            Some(ret) => call_as_if_from(ret, function, &arguments) as *mut c_void,
            None => {
                type Resolution = unsafe extern "C" fn(usize, usize, usize) -> *mut c_void;
                core::mem::transmute::<usize, Resolution>(function)(
                    arguments[0],
                    arguments[1],
                    arguments[2],
                )
            }
        }
    }
}

/// Returns an address from which [`call_as_if_from`] may seem to call, in the code of the library
/// that contains the address `inside`; `None` for the library that contains this code.
fn find_return(inside: usize) -> Option<usize> {
    objects::find_in(|object| {
        let range = object.code_at(inside)?;
        if range.contains(&(find_return as *const () as usize)) {
            return Some(None);
        }
        // SAFETY: mapped code, which is readable on Linux unless the program asks otherwise.
        let bytes = unsafe { core::slice::from_raw_parts(range.start as *const u8, range.len()) };
        Some(arch::find_return(bytes).map(|at| range.start + at))
    })
    .flatten()
}

/// Tells virtual threads of libraries that were loaded or unloaded.
///
/// # Errors
/// There is no room for their thread-local data.
pub(crate) fn catch_up() -> Result<(), String> {
    preempt::libraries_changed();
    late::catch_up(|visit| region::for_each_open(|slot| visit(slot.tp())))
}

forward! {
    /// `dlsym`.
    ///
    /// # Safety
    /// As for libc's function of this name.
    dlsym(when DLSYM) => before_dlsym
}

/// Waits until `dlsym` would not. Returns the address of libc's.
extern "C" fn before_dlsym() -> *mut c_void {
    wait_while_loading(c"dlsym");
    DLSYM.load(Relaxed) // Relaxed: a code address needs no ordering.
}
