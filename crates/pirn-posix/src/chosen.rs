//! Threads that stay platform threads: the user has named the library that makes them, or the one
//! whose code they run; or the library is libgomp, whose threads wait by system calls that Pirn
//! does not see. Each of these would hold a carrier.
//!
//! The name that a thread gives itself comes too late, since its kind is fixed at its creation. Two
//! libraries are known then: the start routine's, and the one that calls `pthread_create`, which is
//! found by unwinding. The search passes over frames of the C++ library: the caller of
//! `std::thread` counts. It costs microseconds per thread, and nothing unless there are patterns;
//! the library of a start routine is remembered.
//!
//! `dladdr` would wait for the lock that `dlopen` holds while a library's initialisers run, which
//! may wait for the very thread that is made here. [`objects`] takes another, which no thread
//! holds for long.

use crate::account::Why;
use core::cell::Cell;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::ptr;
use core::sync::atomic::{AtomicPtr, AtomicUsize, Ordering};
use pirn_libc::thread::names;
use pirn_rt::glibc::objects;
use std::ffi::CString;

/// The patterns; null: none.
static PATTERNS: AtomicPtr<Vec<CString>> = AtomicPtr::new(ptr::null_mut());

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

/// Makes platform threads of the threads that libraries with these names create, and of the threads
/// that run their code. The names are file names, with `*` and `?`, separated by colons. A name may
/// lack the version at its end (`libfoo.so` for `libfoo.so.1`); the program goes by its own name.
///
/// # Safety
/// `patterns` is a C string.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_keep_platform(patterns: *const c_char) {
    // SAFETY: the caller's contract.
    let patterns = unsafe { CStr::from_ptr(patterns) }.to_bytes();
    // Release: pairs with the Acquire in `why`. The former ones may be in use: they stay.
    PATTERNS.store(Box::into_raw(Box::new(split(patterns))), Ordering::Release);
}

/// Returns why a thread with this start routine, which the caller makes, is to be a platform
/// thread, if it is.
#[inline]
pub(crate) fn why(routine: usize) -> Option<Why> {
    // SAFETY: they stay. Acquire: pairs with the Release above.
    let patterns = unsafe { PATTERNS.load(Ordering::Acquire).as_ref() };
    if BY_CALLER.get() || patterns.is_some_and(|patterns| is_one_of(patterns, routine)) {
        return Some(Why::Chosen);
    }
    makes_its_own_calls(routine).then_some(Why::OwnCalls)
}

/// Returns whether a start routine is of a library that makes its system calls itself: OpenMP of
/// GCC, whose threads wait at their barriers by inlined futex calls. With more of them than
/// carriers, spare ones included, a barrier would never be complete.
fn makes_its_own_calls(routine: usize) -> bool {
    /// The last routines that were asked about: the address, or its complement if it is of one.
    static SEEN: [AtomicUsize; 8] = [const { AtomicUsize::new(0) }; 8];
    let place = &SEEN[(routine >> 4) % SEEN.len()];
    // Relaxed, here and below: no other data.
    let seen = place.load(Ordering::Relaxed);
    if seen == routine || seen == !routine {
        return seen != routine;
    }
    let found = with_file_of(routine, |file| file.to_bytes().starts_with(b"libgomp.so"));
    place.store(if found { !routine } else { routine }, Ordering::Relaxed);
    found
}

#[cold]
fn is_one_of(patterns: &[CString], routine: usize) -> bool {
    let is_meant = |address| with_file_of(address, |file| matches_one(patterns, file));
    is_meant(routine) || is_meant(caller())
}

/// Returns the patterns of a list, each also followed by a version.
fn split(patterns: &[u8]) -> Vec<CString> {
    let patterns = patterns.split(|&byte| byte == b':');
    let patterns = patterns.filter(|pattern| !pattern.is_empty());
    let both = patterns.flat_map(|pattern| [pattern.to_vec(), [pattern, b".*"].concat()]);
    both.filter_map(|pattern| CString::new(pattern).ok())
        .collect()
}

/// Returns whether a file name matches one of the patterns.
fn matches_one(patterns: &[CString], file: &CStr) -> bool {
    // SAFETY: C strings.
    let matches = |pattern: &CString| unsafe { libc::fnmatch(pattern.as_ptr(), file.as_ptr(), 0) };
    patterns.iter().any(|pattern| matches(pattern) == 0)
}

/// Calls `use_it` with the name of the file that an address is in the code of; empty if unknown.
fn with_file_of<R>(address: usize, use_it: impl Fn(&CStr) -> R) -> R {
    let found = objects::find_in(|object| {
        object.code_at(address)?;
        let path = object.name().to_bytes_with_nul();
        let start = path
            .iter()
            .rposition(|&byte| byte == b'/')
            .map_or(0, |slash| slash + 1);
        Some(match CStr::from_bytes_with_nul(&path[start..]) {
            Ok(file) if !file.is_empty() => use_it(file),
            _ => use_it(names::program()), // The program's own object has no name.
        })
    });
    found.unwrap_or_else(|| use_it(c""))
}

/// Returns the address of the call that made the running code make a thread: the innermost frame
/// outside of this library and C++'s; 0 if all are inside.
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
                let file = file.to_bytes();
                file.starts_with(b"libstdc++.so") || file.starts_with(b"libc++.so")
            });
        if !passes {
            walk.found = at;
        }
        if passes { GO_ON } else { STOP }
    }
    let here = caller as *const () as usize;
    let own = objects::find_in(|object| object.code_at(here));
    let mut walk = Walk {
        own: own.unwrap_or(here..here + 1),
        found: 0,
    };
    // SAFETY: `visit` gets the walk, which outlives the call.
    unsafe { _Unwind_Backtrace(visit, (&raw mut walk).cast()) };
    walk.found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_several_patterns_matches_a_library_with_or_without_its_version() {
        for (patterns, file, expected) in [
            ("libfoo.so", c"libfoo.so", true),
            ("libfoo.so", c"libfoo.so.1.2", true),
            ("libfoo.so", c"libfoo.sox", false),
            ("libfoo.so.1", c"libfoo.so.2", false),
            ("libf?o.so.1*", c"libfoo.so.1.2", true),
            ("libbar.so:lib*.so", c"libfoo.so.1", true),
            ("libbar.so:", c"libfoo.so.1", false),
            (":", c"", false),
            ("", c"libfoo.so", false),
            ("foo", c"foo", true),
        ] {
            let found = matches_one(&split(patterns.as_bytes()), file);
            assert_eq!(found, expected, "{patterns:?} {file:?}");
        }
    }

    #[test]
    fn code_is_in_a_file() {
        let here = code_is_in_a_file as *const () as usize;
        // The tests of the library are in a program, which has its own name.
        assert!(with_file_of(here, |file| file == names::program()));
        let libc = libc::getpid as *const () as usize;
        assert!(with_file_of(libc, |file| file
            .to_bytes()
            .starts_with(b"libc.so")));
        assert!(with_file_of(1, CStr::is_empty));
    }
}
