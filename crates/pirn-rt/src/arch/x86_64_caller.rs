//! x86-64: functions that ask who calls them.
//!
//! `dlsym` looks at its return address to find out which library calls it. Our function in front of
//! it therefore leaves that of its caller there ([`forward_after`]), and a call for another
//! library has one in that library ([`call_as_if_from`]):
//!
//! ```text
//!   |  return address of `call_as_if_from`    |
//!   |  address of "2:" below                  |  <- popped by the library's `ret`
//!   |  address of some `ret` in the library   |  <- the function's return address
//! ```

use core::arch::naked_asm;

/// Defines the C function `$name` of at most three arguments, which calls `$before()` and goes on
/// to the function whose address that returns, with the same arguments and return address.
#[macro_export]
#[doc(hidden)]
macro_rules! forward_after {
    ($(#[$attribute:meta])* $name:ident, $before:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi; .cfi_adjust_cfa_offset 8",
                "push rsi; .cfi_adjust_cfa_offset 8",
                "push rdx; .cfi_adjust_cfa_offset 8", // rsp is a multiple of 16 again
                "call {}",
                "pop rdx; .cfi_adjust_cfa_offset -8",
                "pop rsi; .cfi_adjust_cfa_offset -8",
                "pop rdi; .cfi_adjust_cfa_offset -8",
                "jmp rax; .cfi_endproc",
                sym $before,
            )
        }
    };
}
pub use forward_after;

/// The byte of a `ret` instruction.
pub const RETURN: u8 = 0xc3;

/// Calls `function` with three arguments and `ret` as the return address, and returns its result.
///
/// # Safety
/// `ret` is the address of a [`RETURN`] byte that may be executed. `function` is an `extern "C"`
/// function of at most three integer or pointer arguments, whose contract holds, and which does not
/// unwind.
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
