//! Names of threads, as the kernel has them: 15 letters at most.
//!
//! The name that is set is in the thread's TLS block, also in those of platform threads: as in the
//! kernel, a new thread begins with its creator's name.

use super::pthread;
use super::{is_virtual, slot_of};
use crate::glibc::symbols::real;
use crate::interpose::process::os_thread;
use crate::interpose::registry::interposed;
use crate::sys::{self, call};
use crate::vthread;
use core::ffi::{CStr, c_char, c_int};
use core::sync::atomic::{AtomicU64, Ordering};
use libc::{pthread_t, size_t};

interposed! {
    family "Names of threads" for Correctness;

    Own by hand {
        pthread_setname_np, pthread_getname_np,
        prctl: "its own name; options that change the OS thread fail",
    }
}

unsafe extern "C" {
    static program_invocation_short_name: *const c_char;
}

/// Length of a thread's longest name with its final zero, as in the kernel.
const NAME: usize = 16;

thread_local! {
    /// The name that was set. It is in each thread's own TLS block at the same distance from the
    /// thread pointer, so that others find it there. It is atomic, so that a reader never sees part
    /// of a letter.
    static NAME_SET: [AtomicU64; NAME / 8] = const { [const { AtomicU64::new(0) }; NAME / 8] };
}

/// Returns the place of a thread's name.
///
/// # Safety
/// `thread` is a virtual thread, or a platform thread that has not ended.
unsafe fn place_of_name<'a>(thread: pthread_t) -> &'a [AtomicU64; NAME / 8] {
    let own = NAME_SET.with(|name| core::ptr::from_ref(name) as usize);
    let distance = crate::arch::thread_pointer() - own;
    // SAFETY: the program's own TLS is at the same place in every thread's block; the caller
    // vouches for the thread.
    unsafe { &*((thread as usize - distance) as *const _) }
}

/// Has a virtual thread, which has not started, begin with the name that its creator, the running
/// thread, has been given.
///
/// # Safety
/// As for [`place_of_name`]; the caller is alone with the thread.
pub(super) unsafe fn inherit(thread: pthread_t) {
    NAME_SET.with(|own| {
        // Relaxed, here and below: only letters.
        if own[0].load(Ordering::Relaxed) != 0 {
            // SAFETY: the caller's contract.
            let place = unsafe { place_of_name(thread) };
            for (place, part) in place.iter().zip(own) {
                place.store(part.load(Ordering::Relaxed), Ordering::Relaxed);
            }
        }
    });
}

/// Notes the name of a thread.
///
/// # Safety
/// As for [`place_of_name`].
unsafe fn set_name(thread: pthread_t, name: &[u8]) {
    let mut bytes = [0; NAME];
    bytes[..name.len()].copy_from_slice(name);
    // SAFETY: the caller's contract.
    let place = unsafe { place_of_name(thread) };
    for (place, part) in place.iter().zip(bytes.as_chunks().0) {
        place.store(u64::from_ne_bytes(*part), Ordering::Relaxed); // Relaxed: only letters.
    }
}

/// Returns the name set with `pthread_setname_np`; or else that of the program, if `pthread_create`
/// has made the thread; or else, for the calling thread only, its own name, truncated.
///
/// # Safety
/// As for [`place_of_name`].
unsafe fn name(thread: pthread_t) -> [u8; NAME] {
    let mut bytes = [0; NAME];
    // SAFETY: the caller's contract.
    let place = unsafe { place_of_name(thread) };
    for (place, part) in place.iter().zip(bytes.as_chunks_mut().0) {
        *part = place.load(Ordering::Relaxed).to_ne_bytes(); // Relaxed: as above.
    }
    if bytes[0] == 0 && pthread::find(thread).is_some() {
        // SAFETY: libc's own name of the program: a C string that stays.
        let program = unsafe { CStr::from_ptr(program_invocation_short_name) }.to_bytes();
        let length = program.len().min(NAME - 1);
        bytes[..length].copy_from_slice(&program[..length]);
    } else if bytes[0] == 0
        && let Some(core) = vthread::current()
        && core.slot() == slot_of(thread)
    {
        let own = core.name().unwrap_or_default();
        let length = own.floor_char_boundary(NAME - 1);
        bytes[..length].copy_from_slice(&own.as_bytes()[..length]);
    }
    bytes
}

/// `pthread_setname_np`: sets a virtual thread's name for C, not its carrier's.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int {
    // SAFETY: the caller's contract, here and below.
    unsafe {
        let mut error = 0;
        if !is_virtual(thread) {
            error = real!(fn pthread_setname_np(thread: pthread_t, name: *const c_char) -> c_int);
        }
        let name = CStr::from_ptr(name).to_bytes();
        if name.len() >= NAME {
            return libc::ERANGE;
        }
        if error == 0 {
            set_name(thread, name);
        }
        error
    }
}

/// `pthread_getname_np`.
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getname_np(
    thread: pthread_t,
    buffer: *mut c_char,
    length: size_t,
) -> c_int {
    if !is_virtual(thread) {
        // SAFETY: the caller's contract.
        return unsafe {
            real!(fn pthread_getname_np(thread: pthread_t, buffer: *mut c_char, length: size_t) -> c_int)
        };
    }
    if length < NAME {
        return libc::ERANGE;
    }
    // SAFETY: the caller's contract: room for `length` bytes.
    unsafe { buffer.cast::<[u8; NAME]>().write_unaligned(name(thread)) };
    0
}

/// `prctl`: a virtual thread has a name of its own; all other options concern the process, or are
/// [refused](os_thread). Variadic in C; see [`syscall`](crate::interpose::futex::syscall).
///
/// # Safety
/// As for libc's function of this name.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn prctl(option: c_int, a: usize, b: usize, c: usize, d: usize) -> c_int {
    let is_virtual = vthread::current().is_some();
    // SAFETY: the caller's contract: a string, or room for one; here and below.
    unsafe {
        match option {
            libc::PR_SET_NAME => {
                if !is_virtual {
                    let result = call!(libc::SYS_prctl, option, a, b, c, d);
                    if result.is_err() {
                        return sys::to_c(result) as c_int;
                    }
                }
                let name = CStr::from_ptr(a as *const c_char).to_bytes();
                set_name(libc::pthread_self(), &name[..name.len().min(NAME - 1)]);
                0
            }
            libc::PR_GET_NAME if is_virtual => {
                (a as *mut [u8; NAME]).write_unaligned(name(libc::pthread_self()));
                0
            }
            _ => {
                let args = [option as usize, a, b, c, d, 0];
                let result = os_thread::refused(libc::SYS_prctl, args)
                    .unwrap_or_else(|| call!(libc::SYS_prctl, option, a, b, c, d));
                sys::to_c(result) as c_int
            }
        }
    }
}
