//! The functions that unwind stacks, from `libgcc_s.so.1`, which is loaded when the first of them
//! is called.
//!
//! `std` is linked with that library, so each program that loads this one would load it as well:
//! 50 µs of the start of a program that makes no thread, and no panic. So the references of `std`
//! and `pirn` lead here, to functions of the same names, which no other library sees. Each jumps to
//! libgcc's with all arguments in their registers, and the stack as its caller has left it: to
//! libgcc that one is the caller.
//!
//! Linking libgcc's unwinder into this library would be wrong: C++ exceptions and `pthread_exit`
//! come from the unwinder of the program, whose private structures ours might lay out in another
//! way.

use crate::arch;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed, Ordering::Release};

/// Defines the functions, in the order of [`NAMES`].
macro_rules! functions {
    ($($index:literal $name:ident)*) => {
        const NAMES: &[&CStr] = &[$(
            match CStr::from_bytes_with_nul(concat!(stringify!($name), "\0").as_bytes()) {
                Ok(name) => name,
                Err(_) => panic!(),
            }
        ),*];
        /// Their addresses in libgcc; null: not looked up.
        static FOUND: [AtomicPtr<c_void>; NAMES.len()] =
            [const { AtomicPtr::new(core::ptr::null_mut()) }; NAMES.len()];
        arch::define!(FOUND, look_up: $($index $name)*);
    };
}

functions! {
    0 _Unwind_Backtrace
    1 _Unwind_DeleteException
    2 _Unwind_GetDataRelBase
    3 _Unwind_GetIP
    4 _Unwind_GetIPInfo
    5 _Unwind_GetLanguageSpecificData
    6 _Unwind_GetRegionStart
    7 _Unwind_GetTextRelBase
    8 _Unwind_RaiseException
    9 _Unwind_Resume
    10 _Unwind_SetGR
    11 _Unwind_SetIP
    12 _Unwind_GetCFA
    13 _Unwind_FindEnclosingFunction
}

/// Looks up all functions, and returns the address of one.
extern "C" fn look_up(index: usize) -> *mut c_void {
    unsafe extern "C" {
        fn dlopen(file: *const c_char, flags: c_int) -> *mut c_void;
        fn dlsym(library: *mut c_void, name: *const c_char) -> *mut c_void;
    }
    // SAFETY: C strings. The library stays: nothing closes it.
    unsafe {
        let library = dlopen(c"libgcc_s.so.1".as_ptr(), libc::RTLD_NOW);
        for (name, found) in NAMES.iter().zip(&FOUND) {
            if !library.is_null() {
                // Release: pairs with the acquire of `arch::define!`: the jump finds the library
                // relocated.
                found.store(dlsym(library, name.as_ptr()), Release);
            }
        }
    }
    let found = FOUND[index].load(Relaxed); // Relaxed: this thread has stored it.
    if found.is_null() {
        const TEXT: &[u8] = b"pirn: a panic needs libgcc_s.so.1, which is not installed\n";
        // SAFETY: the bytes of the text.
        unsafe { libc::write(2, TEXT.as_ptr().cast(), TEXT.len()) };
        // SAFETY: no arguments.
        unsafe { libc::abort() };
    }
    found
}

#[cfg(test)]
mod tests;
