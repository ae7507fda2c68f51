//! x86-64: the frame in which `pthread_exit` ends.
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

unsafe extern "C" {
    fn __sigsetjmp(buffer: *mut c_void, save_mask: c_int) -> c_int;
    fn __pthread_register_cancel(buffer: *mut c_void);
    fn __pthread_unregister_cancel(buffer: *mut c_void);
}

/// Calls `start(argument)` and writes what it returns to `result`. Also returns if the running
/// thread calls `pthread_exit`: then `result` is not written.
///
/// Its unwind information says "no caller": an exception that nobody catches ends the process, as
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
        // function keeps are as they were, so those of our caller are.
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
