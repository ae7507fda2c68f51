//! `libpirn.so`: has the `pthread_create` of programs that know nothing of virtual threads make
//! some.
//!
//! The library is `pirn` itself, with its definitions of libc's functions, as a shared object that
//! is preloaded (`LD_PRELOAD`, `pirn run`) or linked (`-lpirn`). This file is what happens when it
//! is loaded, before the program begins: very little, since most programs make no threads.
//!
//! | variable | |
//! |---|---|
//! | `PIRN_PTHREADS=platform` | switches all of this off |
//! | `PIRN_PLATFORM=libfoo.so:lib*bar.so` | the threads of these libraries are platform threads |
//! | `PIRN_LOG` | says at exit what threads were made; without it, no diagnostics by default |
//! | `PIRN_STACK_SIZE` | stacks of threads whose creator says nothing |
//! | `PIRN_CHILDREN=0` | programs that this one starts run natively |
//! | `PIRN_SEED`, `PIRN_PAUSES` | [simulates](simulated) the program |
//!
//! A program with more rights than its caller reads none of them (`secure_getenv`).

mod arch;
mod atfork;
mod children;
mod dump;
mod go;
mod simulated;
mod unwinding;

extern crate pirn_posix as _;
extern crate virtual_threads as _;

use core::ffi::{CStr, c_char, c_int};
use core::mem::MaybeUninit;
use simulated::Asked;

unsafe extern "C" {
    fn pirn_make_pthreads_virtual(on: c_int);
    fn pirn_keep_platform(patterns: *const c_char);
    safe fn pirn_report_pthreads();
    safe fn pirn_forget_pthreads();
    safe fn pirn_diagnose_if_asked();
    fn pthread_getattr_default_np(attributes: *mut libc::pthread_attr_t) -> c_int;
    fn pthread_setattr_default_np(attributes: *const libc::pthread_attr_t) -> c_int;
}

/// The C library calls this when it has loaded the library, before the program's own initialisers.
#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

extern "C" fn begin() {
    if variable(c"PIRN_CHILDREN").is_some_and(|value| value == c"0") {
        children::leave_alone();
    }
    if variable(c"PIRN_PTHREADS").is_some_and(|value| value == c"platform") || go::made_this() {
        return;
    }
    let asked = simulated::begin();
    if let Asked::Elsewhere = asked {
        return;
    }
    if let Some(patterns) = variable(c"PIRN_PLATFORM") {
        // SAFETY: a C string.
        unsafe { pirn_keep_platform(patterns.as_ptr()) };
    }
    if let Some(bytes) = variable(c"PIRN_STACK_SIZE").and_then(size) {
        set_stack_size(bytes);
    }
    match variable(c"PIRN_LOG") {
        Some(value) if !value.is_empty() && value != c"0" => report_at_exit(),
        _ => pirn_diagnose_if_asked(),
    }
    if let Asked::No = asked {
        // SAFETY: no requirements.
        unsafe { pirn_make_pthreads_virtual(1) };
    }
}

/// Returns a variable, unless the program has more rights than its caller.
fn variable(name: &CStr) -> Option<&'static CStr> {
    unsafe extern "C" {
        fn secure_getenv(name: *const c_char) -> *const c_char;
    }
    // SAFETY: a C string; the result is null, or one that stays until code changes the environment:
    // no other code has begun yet.
    unsafe {
        let value = secure_getenv(name.as_ptr());
        (!value.is_null()).then(|| CStr::from_ptr(value))
    }
}

/// Parses a size in bytes, or the larger one of a range. What is wrong with it is said when the
/// runtime starts.
fn size(text: &CStr) -> Option<usize> {
    let text = text.to_str().ok()?;
    let text = text.split("..").last()?;
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let shift = match text[digits.len()..].bytes().next() {
        None => 0,
        Some(b'K') => 10,
        Some(b'M') => 20,
        Some(b'G') => 30,
        Some(_) => return None,
    };
    digits.parse::<usize>().ok()?.checked_mul(1 << shift)
}

/// Sets the size of the stacks of threads whose creator says nothing.
fn set_stack_size(bytes: usize) {
    let mut attributes = MaybeUninit::uninit();
    // SAFETY: libc initialises the attributes, which are destroyed once. What it refuses stays as
    // it was.
    unsafe {
        if pthread_getattr_default_np(attributes.as_mut_ptr()) == 0 {
            libc::pthread_attr_setstacksize(attributes.as_mut_ptr(), bytes);
            pthread_setattr_default_np(attributes.as_ptr());
            libc::pthread_attr_destroy(attributes.as_mut_ptr());
        }
    }
}

/// Has the process say at its end what threads it has made.
fn report_at_exit() {
    extern "C" fn report() {
        pirn_report_pthreads();
    }
    unsafe extern "C" fn forget() {
        pirn_forget_pthreads();
    }
    // SAFETY: functions that stay: the library is never unloaded.
    unsafe {
        libc::atexit(report);
        libc::pthread_atfork(None, None, Some(forget));
    }
}
