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

use core::arch::global_asm;
use core::ffi::{CStr, c_char, c_int, c_void};
use core::sync::atomic::{AtomicPtr, Ordering::Relaxed};

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
        $(
            // `rax` has no argument of any of them.
            global_asm!(
                concat!(".globl ", stringify!($name)),
                concat!(".hidden ", stringify!($name)),
                concat!(".type ", stringify!($name), ",@function"),
                concat!(stringify!($name), ":"),
                concat!("mov rax, [rip + {found} + 8 * ", $index, "]"),
                "test rax, rax",
                "je 2f",
                "jmp rax",
                concat!("2: mov eax, ", $index),
                "jmp {find}",
                found = sym FOUND,
                find = sym find,
            );
        )*
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

/// Looks up the function with the number in `eax`, and goes on there.
///
/// # Safety
/// Jumped to from the functions above only.
#[unsafe(naked)]
unsafe extern "C" fn find() {
    core::arch::naked_asm!(
        "push rdi",
        "push rsi",
        "push rdx",
        "push rcx",
        "push r8", // rsp is a multiple of 16 again
        "mov edi, eax",
        "call {look_up}",
        "pop r8",
        "pop rcx",
        "pop rdx",
        "pop rsi",
        "pop rdi",
        "jmp rax",
        look_up = sym look_up,
    )
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
                // Relaxed: addresses of code, the same each time.
                found.store(dlsym(library, name.as_ptr()), Relaxed);
            }
        }
    }
    let found = FOUND[index].load(Relaxed);
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
