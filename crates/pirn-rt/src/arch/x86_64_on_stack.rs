//! x86-64: calling a function on another stack of the same thread.

use core::arch::naked_asm;
use core::ffi::c_void;

/// Returns the stack pointer of the calling code, or a little less.
#[inline(always)]
pub fn stack_pointer() -> usize {
    let sp: usize;
    // SAFETY: reads a register.
    unsafe {
        core::arch::asm!("mov {}, rsp", out(reg) sp, options(nomem, nostack, preserves_flags))
    };
    sp
}

/// Calls `function(data)` with the stack pointer `top`. Backtraces show the caller's frames below.
///
/// # Safety
/// `top` is a multiple of 16, above a stack that nobody uses and that is as deep as the function
/// needs. The contract of `function`.
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
