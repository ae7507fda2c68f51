//! x86-64: a function in front of `setjmp` and the like, which must return to its caller's frame
//! twice.

/// Defines the C function `$name`, of up to two arguments. It calls `$note` with them and goes on
/// at the address which that returns, with the same arguments, as if its caller had called that.
#[macro_export]
#[doc(hidden)]
macro_rules! forward {
    ($(#[$attribute:meta])* $name:ident => $note:path) => {
        $(#[$attribute])*
        #[unsafe(naked)]
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn $name() {
            core::arch::naked_asm!(
                ".cfi_startproc",
                "push rdi; .cfi_adjust_cfa_offset 8",
                "push rsi; .cfi_adjust_cfa_offset 8",
                "sub rsp, 8; .cfi_adjust_cfa_offset 8",
                "call {note}",
                "add rsp, 8; .cfi_adjust_cfa_offset -8",
                "pop rsi; .cfi_adjust_cfa_offset -8",
                "pop rdi; .cfi_adjust_cfa_offset -8",
                "jmp rax",
                ".cfi_endproc",
                note = sym $note,
            )
        }
    };
}
pub use forward;
