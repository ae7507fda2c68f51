//! Threads that stay platform threads because somebody wants it so: by the library that makes them,
//! or whose code they run. Somebody is the user, or this file: it knows of a library whose threads
//! wait by system calls that Pirn does not see, each of which would hold a carrier.
//!
//! The name that a thread gives itself comes too late, since a thread is what it is from its
//! creation. The library is known then: that of the start routine, and that of the call of
//! `pthread_create`, which is found by unwinding. Frames of the C++ library are passed over: a
//! `std::thread` is made by its caller. All of this costs microseconds per thread, and nothing
//! unless there are patterns; whose code a start routine is, is remembered.
//!
//! `dladdr` would wait for the lock that `dlopen` holds while a library's initialisers run, which
//! may wait for the very thread that is made here. [`objects`] takes another, which nobody holds
//! for long.

use crate::account::Why;
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use pirn_libc::thread::names;
use pirn_rt::glibc::objects;

/// Patterns, separated by colons; null: none.
static PATTERNS: AtomicPtr<c_char> = AtomicPtr::new(ptr::null_mut());

unsafe extern "C" {
    fn _Unwind_Backtrace(
        visit: extern "C" fn(*mut c_void, *mut c_void) -> c_int,
        argument: *mut c_void,
    ) -> c_int;
    fn _Unwind_GetIP(context: *mut c_void) -> usize;
}

thread_local! {
    /// Whether the calling thread asks for a platform thread.
    static BY_CALLER: Cell<bool> = const { Cell::new(false) };
}

/// Calls `create`, which makes a platform thread.
pub(crate) fn by_caller<R>(create: impl FnOnce() -> R) -> R {
    BY_CALLER.set(true);
    let result = create();
    BY_CALLER.set(false);
    result
}

/// Has threads that the libraries with these names make, or whose code they run, be platform
/// threads: file names, with `*` and `?`, separated by colons. A name without the version that
/// follows it will do (`libfoo.so` for `libfoo.so.1`); the program itself is meant by its own name.
///
/// # Safety
/// `patterns` is a C string.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_keep_platform(patterns: *const c_char) {
    // SAFETY: the caller's contract.
    let copy = unsafe { libc::strdup(patterns) };
    // Release: pairs with the Acquire in `why`. The former ones may be in use: they stay.
    PATTERNS.store(copy, Ordering::Release);
}

/// Returns why a thread with this start routine, which the caller makes, is to be a platform
/// thread, if it is.
#[inline]
pub(crate) fn why(routine: usize) -> Option<Why> {
    // SAFETY: a C string of ours, which stays. Acquire: pairs with the Release above.
    let patterns = unsafe { PATTERNS.load(Ordering::Acquire).as_ref() };
    let is_meant =
        // SAFETY: as above.
        |patterns: &c_char| is_one_of(unsafe { CStr::from_ptr(patterns) }, routine);
    if BY_CALLER.get() || patterns.is_some_and(is_meant) {
        return Some(Why::Chosen);
    }
    makes_its_own_calls(routine).then_some(Why::OwnCalls)
}

/// OpenMP of GCC: its threads wait at their barriers by inlined futex calls. With more of them than
/// carriers, spare ones included, a barrier would never be complete.
const MAKE_THEIR_OWN_CALLS: &[u8] = b"libgomp.so";

/// Returns whether a start routine is of a library that makes its system calls itself.
fn makes_its_own_calls(routine: usize) -> bool {
    /// The last routines that were asked about: the address, or its complement if it is of one.
    static SEEN: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
    let place = &SEEN[(routine >> 4) % SEEN.len()];
    // Relaxed, here and below: a word complete in itself.
    let seen = place.load(Ordering::Relaxed);
    if seen == routine || seen == !routine {
        return seen != routine;
    }
    let found = with_file_of(routine, |file| matches_one(MAKE_THEIR_OWN_CALLS, file));
    place.store(if found { !routine } else { routine }, Ordering::Relaxed);
    found
}

#[cold]
fn is_one_of(patterns: &CStr, routine: usize) -> bool {
    let patterns = patterns.to_bytes();
    let is_meant = |address| with_file_of(address, |file| matches_one(patterns, file));
    is_meant(routine) || is_meant(caller())
}

/// Returns whether a file name matches one of the patterns, with or without its version.
fn matches_one(patterns: &[u8], file: &[u8]) -> bool {
    let unversioned = file.windows(4).position(|part| part == b".so.");
    let unversioned = unversioned.map_or(file, |at| &file[..at + 3]);
    let mut patterns = patterns.split(|&byte| byte == b':');
    patterns.any(|pattern| {
        !pattern.is_empty() && (matches(pattern, file) || matches(pattern, unversioned))
    })
}

/// Returns whether a text matches a pattern: `*` stands for any text, `?` for any byte.
fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Where the last star is, and how much of the text it stands for.
    let (mut star, mut taken) = (None, 0);
    let (mut p, mut t) = (0, 0);
    while t < text.len() {
        match pattern.get(p) {
            Some(b'*') => {
                (star, taken) = (Some(p), t);
                p += 1;
            }
            Some(&byte) if byte == b'?' || byte == text[t] => {
                p += 1;
                t += 1;
            }
            _ => match star {
                Some(star) => {
                    taken += 1;
                    (p, t) = (star + 1, taken);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|&byte| byte == b'*')
}

/// Calls `use_it` with the name of the file that an address is in the code of; empty if unknown.
fn with_file_of<R>(address: usize, use_it: impl Fn(&[u8]) -> R) -> R {
    let found = objects::find_in(|object| {
        if !object
            .segments(libc::PF_X)
            .any(|code| code.contains(&address))
        {
            return None;
        }
        let path = object.name().to_bytes();
        Some(match path.rsplit(|&byte| byte == b'/').next() {
            None | Some([]) => use_it(names::program().to_bytes()),
            Some(file) => use_it(file),
        })
    });
    found.unwrap_or_else(|| use_it(b""))
}

/// Returns the address of the call that made the running code make a thread: the innermost frame
/// that belongs neither to this library nor to C++'s; 0 if there is none.
fn caller() -> usize {
    struct Walk {
        own: core::ops::Range<usize>,
        found: usize,
    }
    extern "C" fn visit(context: *mut c_void, walk: *mut c_void) -> c_int {
        const GO_ON: c_int = 0; // _URC_NO_REASON
        const STOP: c_int = 4; // _URC_NORMAL_STOP
        // SAFETY: the unwinder's own pointer, and ours from below.
        let (walk, at) = unsafe { (&mut *walk.cast::<Walk>(), _Unwind_GetIP(context)) };
        let passes = walk.own.contains(&at)
            || with_file_of(at, |file| {
                file.starts_with(b"libstdc++.so") || file.starts_with(b"libc++.so")
            });
        if !passes {
            walk.found = at;
        }
        if passes { GO_ON } else { STOP }
    }
    let here = caller as *const () as usize;
    let own = objects::find_in(|object| {
        let mut code = object.segments(libc::PF_X);
        code.find(|code| code.contains(&here))
    });
    let mut walk = Walk {
        own: own.unwrap_or(here..here + 1),
        found: 0,
    };
    // SAFETY: `visit` gets the walk, which outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    walk.found
}

#[cfg(test)]
mod tests;
