//! x86-64: calls that the compiler does not make: on another stack, as from another library, as by
//! glibc's start of a thread, and without a frame.
//!
//! `dlsym` looks at its return address to find out which library calls it. [`call_as_if_from`]
//! makes it find an address in a library of the caller's choice:
//!
//! ```text
//!   |  return address of `call_as_if_from`    |
//!   |  address of "2:" below                  |  <- popped by the library's `ret`
//!   |  address of some `ret` in the library   |  <- the function's return address
//! ```
//!
//! glibc's `pthread_exit` unwinds the stack, runs cleanup handlers and C++ destructors on the way,
//! and at last jumps to the buffer that the thread has registered. glibc itself registers one where
//! it starts a thread; [`call_as_pthread`] does so with the functions that C's
//! `pthread_cleanup_push` expands to.
//!
//! ```text
//!   rsp + 152   return address
//!   rsp + 128   place of the result
//!   rsp + 120   argument
//!   rsp + 112   start routine
//!   rsp         __pthread_unwind_buf_t, 104 bytes: registers, mask, 4 words of glibc's
//! ```

use core::arch::naked_asm;
use core::ffi::{c_int, c_void};

/// Calls `function(data)` with the stack pointer `top`. Backtraces show the caller's frames below.
///
/// # Safety
/// `top` is a multiple of 16, above an unused stack that is as deep as the function needs. The
/// contract of `function`.
#[unsafe(naked)]
pub unsafe extern "C-unwind" fn call_on_stack(
    top: usize,
    function: unsafe extern "C-unwind" fn(*mut c_void),
    data: *mut c_void,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbp; .cfi_adjust_cfa_offset 8; .cfi_rel_offset rbp, 0",
        "mov rbp, rsp; .cfi_def_cfa_register rbp",
        "mov rsp, rdi",
        "mov rdi, rdx",
        "call rsi",
        "mov rsp, rbp",
        "pop rbp; .cfi_def_cfa rsp, 8",
        "ret; .cfi_endproc",
    )
}

/// Returns how far from the beginning of this code there is a place for [`call_as_if_from`]: a
/// `ret`.
pub fn find_return(code: &[u8]) -> Option<usize> {
    const RETURN: u8 = 0xc3;
    code.iter().position(|&byte| byte == RETURN)
}

/// Calls `function` with three arguments and `ret` as the return address, and returns its result.
///
/// # Safety
/// `ret` is an address that [`find_return`] has found, in code that may be executed. `function` is
/// an `extern "C"` function of at most three integer or pointer arguments, whose contract holds,
/// and which does not unwind.
#[unsafe(naked)]
pub unsafe extern "C" fn call_as_if_from(
    ret: usize,
    function: usize,
    arguments: &[usize; 3],
) -> usize {
    naked_asm!(
        "mov rax, rsi",
        "mov r10, rdi",
        "mov rdi, [rdx]",
        "mov rsi, [rdx + 8]",
        "mov rdx, [rdx + 16]",
        "lea r11, [rip + 2f]",
        "push r11",
        "push r10", // rsp is now as after a call: 8 below a multiple of 16
        "jmp rax",
        "2:",
        "ret",
    )
}

unsafe extern "C" {
    fn __sigsetjmp(buffer: *mut c_void, save_mask: c_int) -> c_int;
    fn __pthread_register_cancel(buffer: *mut c_void);
    fn __pthread_unregister_cancel(buffer: *mut c_void);
}

/// Calls `start(argument)` and writes what it returns to `result`. Also returns if the running
/// thread calls `pthread_exit`: then `result` is not written.
///
/// Its unwind information says "no caller": an uncaught exception ends the process, as
/// on glibc's own threads, and no handler of the runtime's sees it.
///
/// # Safety
/// `start` may be called with `argument`; `result` is valid for writes. glibc's own cleanup buffers
/// are in a complete TCB.
#[unsafe(naked)]
pub unsafe extern "C" fn call_as_pthread(
    start: unsafe extern "C-unwind" fn(*mut c_void) -> *mut c_void,
    argument: *mut c_void,
    result: *mut *mut c_void,
) {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined rip",
        "sub rsp, 152",
        ".cfi_def_cfa_offset 160",
        "mov [rsp + 112], rdi",
        "mov [rsp + 120], rsi",
        "mov [rsp + 128], rdx",
        // It returns a second time, with 1, at the end of an unwinding. The registers that a
        // function keeps are as they were, so our caller finds its own in them.
        "mov rdi, rsp",
        "xor esi, esi",
        "call [rip + {setjmp}@GOTPCREL]",
        "test eax, eax",
        "jnz 2f",
        "mov rdi, rsp",
        "call [rip + {register}@GOTPCREL]",
        "mov rdi, [rsp + 120]",
        "call [rsp + 112]",
        ".globl pirn_pthread_called; .hidden pirn_pthread_called",
        "pirn_pthread_called:",
        "mov rcx, [rsp + 128]",
        "mov [rcx], rax",
        "mov rdi, rsp",
        "call [rip + {unregister}@GOTPCREL]",
        "2:",
        "add rsp, 152",
        ".cfi_def_cfa_offset 8",
        "ret",
        ".cfi_endproc",
        setjmp = sym __sigsetjmp,
        register = sym __pthread_register_cancel,
        unregister = sym __pthread_unregister_cancel,
    )
}

/// Arguments of [`call_pair`].
#[repr(C)]
pub(crate) struct Pair {
    pub(crate) first: usize,
    pub(crate) second: usize,
    pub(crate) function: *const c_void,
}

/// Calls `function(first, second)`, without a frame of its own: a sanitizer does not instrument it.
///
/// # Safety
/// `pair` points to a [`Pair`] with a C function that may be called with these arguments.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_pair(pair: *mut u8) {
    naked_asm!(
        "mov rax, [rdi + 16]",
        "mov rsi, [rdi + 8]",
        "mov rdi, [rdi]",
        "jmp rax",
    )
}
