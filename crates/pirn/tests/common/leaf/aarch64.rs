//! AArch64. The function without a frame is called by one that signs its own return address.

use std::arch::naked_asm;
use std::sync::atomic::AtomicBool;

/// Returns when the value is true.
#[unsafe(naked)]
pub extern "C" fn spin(_over: &AtomicBool) {
    naked_asm!(
        ".cfi_startproc",
        "hint #25; .cfi_negate_ra_state", // paciasp
        "stp x29, x30, [sp, #-16]!; .cfi_def_cfa_offset 16",
        ".cfi_offset x29, -16; .cfi_offset x30, -8",
        "mov x29, sp",
        "bl {leaf}",
        "ldp x29, x30, [sp], #16; .cfi_def_cfa_offset 0; .cfi_restore x29; .cfi_restore x30",
        "hint #29; .cfi_negate_ra_state", // autiasp
        "ret; .cfi_endproc",
        leaf = sym leaf,
    )
}

#[unsafe(naked)]
extern "C" fn leaf(_over: &AtomicBool) {
    naked_asm!(
        ".cfi_startproc",
        "2: ldrb w1, [x0]",
        "cbz w1, 2b",
        "ret; .cfi_endproc",
    )
}
