//! `dlfcn.h`, `link.h`: closing libraries, and looking at those that are loaded.
//!
//! `dlopen` is libc's: the linker itself calls Pirn where it locks, and before it calls
//! initialisers ([`linker`]).
//!
//! Libraries that libc closes itself (`iconv`'s and the name service's modules) are noticed when
//! the program opens or closes another one.

use crate::process::linker::ObjectsLocked;
use crate::registry::interposed;
use core::ffi::{c_int, c_void};
use pirn_rt::arch::{RETURN, call_as_if_from};
use pirn_rt::glibc::symbols::real;
use pirn_rt::glibc::{late, objects};
use pirn_rt::sched::preempt;
use pirn_rt::stack::region;

interposed! {
    family "Libraries" for Correctness;

    Own as {
        fn dlclose(handle: *mut c_void) -> c_int = {
            let result = real!(fn dlclose(handle: *mut c_void) -> c_int);
            // A lack of room has been reported when the library was opened.
            let _ = catch_up();
            result
        };
    }
    Parks by hand { dl_iterate_phdr: "for the linker's lock; not preempted meanwhile" }
}

/// `dl_iterate_phdr`: the linker's lock is held while the callback runs.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C-unwind" fn dl_iterate_phdr(
    callback: *const c_void,
    data: *mut c_void,
) -> c_int {
    let locked = ObjectsLocked::by_parking();
    // SAFETY: the caller's contract.
    let result = preempt::without(|| unsafe {
        real!(unwinding fn dl_iterate_phdr(callback: *const c_void, data: *mut c_void) -> c_int)
    });
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

/// Returns the address of a `ret` instruction, in the code of the library that contains the address
/// `inside`; `None` for the library that contains this code.
fn find_return(inside: usize) -> Option<usize> {
    objects::find_in(|object| {
        let range = object
            .segments(libc::PF_X)
            .find(|range| range.contains(&inside))?;
        if range.contains(&(find_return as *const () as usize)) {
            return Some(None);
        }
        // SAFETY: mapped code, which is readable on Linux unless the program asks otherwise.
        let bytes = unsafe { core::slice::from_raw_parts(range.start as *const u8, range.len()) };
        let at = bytes.iter().position(|&byte| byte == RETURN);
        Some(at.map(|at| range.start + at))
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
