//! x86-64.

use std::arch::naked_asm;
use std::sync::atomic::AtomicBool;

/// Returns when the value is true.
#[unsafe(naked)]
pub extern "C" fn spin(_over: &AtomicBool) {
    naked_asm!(
        ".cfi_startproc",
        "2: cmp byte ptr [rdi], 0",
        "je 2b",
        "ret; .cfi_endproc",
    )
}
