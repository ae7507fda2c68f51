//! AArch64: calls that the compiler does not make: on another stack, as from another library, as by
//! glibc's start of a thread, and without a frame.
//!
//! `dlsym` looks at its return address to find out which library calls it. [`call_as_if_from`]
//! makes it find an address in a library of the caller's choice. A `ret` alone would return to
//! itself, since the return address is in a register. So it is the end of some function there,
//! which takes the next return address from the stack:
//!
//! ```text
//!   the library                          the stack when the function is called
//!     ldp x29, x30, [sp], #N   <- x30      |  frame of `call_as_if_from`   |
//!     autiasp        (not in all)          |  N - 16 bytes without meaning |
//!     ret                                  |  x30: address of "2:" below   |
//!                                          |  x29                          |  <- sp
//! ```
//!
//! `autiasp` checks the signature that `paciasp` makes: over the address and the stack pointer
//! above the N bytes.
//!
//! glibc's `pthread_exit` unwinds the stack, runs cleanup handlers and C++ destructors on the way,
//! and at last jumps to the buffer that the thread has registered. glibc itself registers one where
//! it starts a thread; [`call_as_pthread`] does so with the functions that C's
//! `pthread_cleanup_push` expands to.
//!
//! ```text
//!   sp + 64   __pthread_unwind_buf_t, 216 bytes: 22 registers, mask, 4 words of glibc's
//!   sp + 32   place of the result
//!   sp + 24   argument
//!   sp + 16   start routine
//!   sp        x29, x30
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
        "stp x29, x30, [sp, #-16]!; .cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16; .cfi_offset x30, -8",
        "mov x29, sp; .cfi_def_cfa_register x29",
        "mov sp, x0",
        "mov x0, x2",
        "blr x1",
        "mov sp, x29; .cfi_def_cfa_register sp",
        "ldp x29, x30, [sp], #16; .cfi_def_cfa_offset 0; .cfi_restore x29; .cfi_restore x30",
        "ret; .cfi_endproc",
    )
}

/// `ldp x29, x30, [sp], #0`, whose immediate is 7 bits from bit 15 on, in words.
const LOAD_PAIR: u32 = 0xa8c0_7bfd;
const AUTHENTICATE: u32 = 0xd503_23bf; // autiasp
const RETURN: u32 = 0xd65f_03c0;

/// Returns how far from the beginning of this code there is a place for [`call_as_if_from`].
pub fn find_return(code: &[u8]) -> Option<usize> {
    let word = |at: usize| {
        let bytes = code.get(at..at + 4)?;
        Some(u32::from_le_bytes(bytes.try_into().ok()?))
    };
    let is_end = |at: usize| {
        let Some(load) = word(at) else {
            return false;
        };
        // 16 to 496 bytes, a multiple of 16.
        let bytes = load >> 15 & 0x7f;
        let takes_pair =
            load & !(0x7f << 15) == LOAD_PAIR && (2..64).contains(&bytes) && bytes % 2 == 0;
        takes_pair
            && match word(at + 4) {
                Some(AUTHENTICATE) => word(at + 8) == Some(RETURN),
                next => next == Some(RETURN),
            }
    };
    (0..code.len()).step_by(4).find(|&at| is_end(at))
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
        "stp x29, x30, [sp, #-16]!",
        "mov x29, sp",
        "ldp w9, w10, [x0]",
        "ubfx w9, w9, #15, #7",
        "adr x30, 2f",
        "mov w11, #0x23bf",
        "movk w11, #0xd503, lsl #16",
        "cmp w10, w11",
        "b.ne 3f",
        "hint #25", // paciasp
        "3:",
        "sub sp, sp, x9, lsl #3",
        "stp x29, x30, [sp]",
        "mov x30, x0",
        "mov x16, x1",
        "ldp x0, x1, [x2]",
        "ldr x2, [x2, #16]",
        "br x16",
        "2:",
        "ldp x29, x30, [sp], #16",
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
        ".cfi_undefined x30",
        "sub sp, sp, #288",
        ".cfi_def_cfa_offset 288",
        "stp x29, x30, [sp]",
        "mov x29, sp",
        "stp x0, x1, [sp, #16]",
        "str x2, [sp, #32]",
        // It returns a second time, with 1, at the end of an unwinding. The registers that a
        // function keeps are as they were, so our caller finds its own in them.
        "add x0, sp, #64",
        "mov w1, wzr",
        "bl {setjmp}",
        "cbnz w0, 2f",
        "add x0, sp, #64",
        "bl {register}",
        "ldp x9, x0, [sp, #16]",
        "blr x9",
        ".globl pirn_pthread_called; .hidden pirn_pthread_called",
        "pirn_pthread_called:",
        "ldr x9, [sp, #32]",
        "str x0, [x9]",
        "add x0, sp, #64",
        "bl {unregister}",
        "2:",
        "ldp x29, x30, [sp]",
        "add sp, sp, #288",
        ".cfi_def_cfa_offset 0",
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
    naked_asm!("ldr x16, [x0, #16]", "ldp x0, x1, [x0]", "br x16")
}
