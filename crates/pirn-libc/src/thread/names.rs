//! Names of threads, as the kernel has them: 15 letters at most.
//!
//! As in the kernel, a new thread begins with its creator's name.

use crate::identity::{is_virtual, slot_of};
use crate::posix;
use crate::registry::interposed;
use core::ffi::{CStr, c_char, c_int};
use libc::{pthread_t, size_t};
use pirn_libc_macros::libc_fn;
use pirn_rt::arch::thread_pointer;

use pirn_rt::vthread;
use pirn_rt::vthread::identity::{self, C_NAME};

interposed! {
    family "Names of threads" for Correctness;

    Own by hand {
        pthread_setname_np, pthread_getname_np,
    }
}

/// Gives a virtual thread, which has not started, the name of its creator, the running thread, if
/// the creator has been given one.
///
/// # Safety
/// As for [`set_name`]; the caller is alone with the thread.
pub unsafe fn inherit(thread: pthread_t) {
    // SAFETY: the caller's contract, and the running thread.
    unsafe {
        let own = identity::c_name(thread_pointer());
        if own[0] != 0 {
            identity::set_c_name(tp_of(thread), &own);
        }
    }
}

/// Returns the thread pointer of a thread of either kind: as far from it as the running thread's.
pub(crate) fn tp_of(thread: pthread_t) -> usize {
    // SAFETY: no arguments.
    let own = unsafe { libc::pthread_self() } as usize;
    (thread as usize).wrapping_add(thread_pointer().wrapping_sub(own))
}

/// Notes the name of a thread.
///
/// # Safety
/// `thread` is a virtual thread, or a platform thread that has not ended.
pub(crate) unsafe fn set_name(thread: pthread_t, name: &[u8]) {
    let mut bytes = [0; C_NAME];
    bytes[..name.len()].copy_from_slice(name);
    // SAFETY: the caller's contract.
    unsafe { identity::set_c_name(tp_of(thread), &bytes) };
}

/// Returns the last component of the program's name.
pub fn program() -> &'static CStr {
    unsafe extern "C" {
        static program_invocation_short_name: *const c_char;
    }
    // SAFETY: libc's own C string, which stays.
    unsafe { CStr::from_ptr(program_invocation_short_name) }
}

/// Returns the name set with `pthread_setname_np`; or else the program's, if `pthread_create`
/// has made the thread; or else, for the calling thread only, its own name, truncated.
///
/// # Safety
/// As for [`set_name`].
pub(crate) unsafe fn name(thread: pthread_t) -> [u8; C_NAME] {
    // SAFETY: the caller's contract.
    let mut bytes = unsafe { identity::c_name(tp_of(thread)) };
    if bytes[0] == 0 && posix::find(thread).is_some() {
        let program = program().to_bytes();
        let length = program.len().min(C_NAME - 1);
        bytes[..length].copy_from_slice(&program[..length]);
    } else if bytes[0] == 0
        && let Some(core) = vthread::current()
        && core.slot() == slot_of(thread)
    {
        let own = core.name().unwrap_or_default();
        let length = own.floor_char_boundary(C_NAME - 1);
        bytes[..length].copy_from_slice(&own.as_bytes()[..length]);
    }
    bytes
}

/// Sets a virtual thread's name for C, not its carrier's.
#[libc_fn]
pub unsafe fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int {
    let mut error = 0;
    if !is_virtual(thread) {
        error = libcs!();
    }
    let name = CStr::from_ptr(name).to_bytes();
    if name.len() >= C_NAME {
        return libc::ERANGE;
    }
    if error == 0 {
        set_name(thread, name);
    }
    error
}

#[libc_fn]
pub unsafe fn pthread_getname_np(thread: pthread_t, buffer: *mut c_char, length: size_t) -> c_int {
    if !is_virtual(thread) {
        return libcs!();
    }
    if length < C_NAME {
        return libc::ERANGE;
    }
    // SAFETY: the caller's contract: room for `length` bytes.
    unsafe { buffer.cast::<[u8; C_NAME]>().write_unaligned(name(thread)) };
    0
}
