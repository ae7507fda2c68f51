//! AArch64: the context switch, and what it leaves on a stack.
//!
//! A suspended context is nothing but a stack pointer. What is on its stack, growing down:
//!
//! ```text
//!   higher addresses
//!   |  frames of the suspended code   |
//!   |  x29                            |
//!   |  x19                            |
//!   |  FPCR                           |
//!   |  address to go on at            |  <- saved stack pointer
//!   lower addresses
//! ```
//!
//! All other registers are declared clobbered at the place of the switch, so the compiler saves
//! only those that are live there. `asm!` does not accept `x19` and `x29` as clobbers: the switch
//! stores them. FPCR is callee-saved by the ABI and belongs to the thread; the switch loads it only
//! if the two contexts differ. The lower halves of `v8` to `v15` are among the clobbers of the C
//! ABI here, although a C function would keep them.
//!
//! The processor's state for streaming vectors (SME) is off at each call of an ordinary function,
//! and so here.
//!
//! # What debuggers and unwinders see
//!
//! As on x86-64: the switch has no unwind information of its own, and each copy of it notes its
//! addresses in a section of the program (`in_switch`, in `walk.rs`). The outermost frame of a
//! virtual thread is [`start_of_stack`], which has no caller.

use super::registers::FloatControls;
use core::arch::{asm, naked_asm};

/// The switch, with the instruction that changes the stack.
macro_rules! switch {
    ([$($change:literal),+], $save:ident, $to:ident, $tp:ident; $($more:tt)*) => {
        asm!(
            "6:",
            // What `asm!` cannot clobber, the floating point controls, and where to go on, onto our
            // stack. The stack pointer is a multiple of 16 at each access: the processor checks.
            "stp x19, x29, [sp, #-16]!",
            "mrs x9, fpcr",
            "adr x10, 2f",
            "stp x10, x9, [sp, #-16]!",
            // From this store on the context could be resumed, but no other thread knows of it
            // before the other side says so, by a store with Release.
            "mov x11, sp",
            "str x11, [x0]",
            $($change,)+
            "msr tpidr_el0, x2",
            "ldp x10, x12, [sp]",
            "cmp x12, x9",
            "b.ne 3f",
            "4:",
            "br x10",
            "3:",
            "msr fpcr, x12",
            "b 4b",
            // Another context has switched back, perhaps on another platform thread.
            "2:",
            "hint #36", // bti j: an indirect jump may lead here
            "ldp x19, x29, [sp, #16]",
            "add sp, sp, #32",
            // Where this copy of the switch begins and ends, as distances from the two places. `R`:
            // the linker keeps the section.
            "7:",
            ".pushsection pirn_switches, \"aR\", @progbits",
            ".balign 4",
            ".long 6b - ., 7b - .",
            ".popsection",
            $($more)*
            inout("x0") $save => _,
            inout("x1") $to => _,
            inout("x2") $tp => _,
            out("x20") _, out("x21") _, out("x22") _, out("x23") _, out("x24") _,
            out("x25") _, out("x26") _, out("x27") _, out("x28") _,
            clobber_abi("C"),
        )
    };
}

/// Saves the running context in `*save`, makes `tp` the thread pointer and continues at the
/// context saved in `to`. Returns when another context switches back to `*save`.
///
/// # Safety
/// `to` was written by [`prepare`] or by an earlier switch, has not been resumed since, and its
/// stack is alive. `tp` is the thread pointer that belongs to that stack. `save` stays valid until
/// this call returns.
#[inline(always)]
pub(crate) unsafe fn switch(save: *mut *mut u8, to: *mut u8, tp: usize) {
    // SAFETY: the caller's contract. Every register the other side may change is an output or
    // saved by hand; there is no red zone.
    unsafe { switch!(["mov sp, x1"], save, to, tp;) }
}

/// Does what [`switch`] does under valgrind: the stack pointer is `way` for a moment,
/// [`NOWHERE`](super::NOWHERE).
///
/// # Safety
/// As for `switch`.
#[inline(never)]
pub(crate) unsafe fn switch_slowly(save: *mut *mut u8, to: *mut u8, tp: usize, way: *mut u8) {
    // SAFETY: as in `switch`.
    unsafe {
        switch!(
            [
                "mov sp, x3",
                "ldr x11, [x1]", // valgrind looks at the stack pointer when memory is read
                "mov sp, x1"
            ],
            save, to, tp;
            inout("x3") way => _,
        );
    }
}

/// Where readers outside of the process find the registers of a suspended context, from its saved
/// stack pointer on; `saved.bytes` is where its own frames begin.
pub const SAVED: [(&str, usize); 4] = [
    ("saved.pc", 0),
    ("saved.x19", 16),
    ("saved.x29", 24),
    ("saved.bytes", 32),
];

/// Lays out a fresh stack so that the first [`switch`] to it calls `entry(argument)`.
/// Its floating point controls are `floats`. Returns the stack pointer to switch to.
///
/// # Safety
/// `top` is 16-byte aligned and at least 64 bytes below it are writable and unused.
/// `entry` never returns.
pub(crate) unsafe fn prepare(
    top: *mut u8,
    entry: unsafe extern "C" fn(*mut u8) -> !,
    argument: *mut u8,
    floats: FloatControls,
) -> *mut u8 {
    // SAFETY: inside the 64 bytes the caller vouches for.
    unsafe {
        let frame = top.cast::<u64>().sub(4);
        frame.write(start_of_stack as *const () as usize as u64);
        frame.add(1).write(floats.word());
        frame.add(2).write(entry as usize as u64);
        frame.add(3).write(argument as usize as u64);
        frame.cast()
    }
}

/// The outermost frame of every virtual thread, reached by [`switch`] with the stack of
/// [`prepare`]. Its unwind information says "no caller", so backtraces end here.
#[unsafe(naked)]
unsafe extern "C" fn start_of_stack() {
    naked_asm!(
        ".cfi_startproc",
        ".cfi_undefined x30",
        ".cfi_undefined x29",
        "hint #36",              // bti j
        "ldp x9, x0, [sp, #16]", // entry and its argument
        // Where they were, the frame record that ends the chain of records (AAPCS64).
        "stp xzr, xzr, [sp, #16]!",
        "mov x29, sp",
        "mov x30, xzr",
        "blr x9",
        ".globl pirn_outermost; .hidden pirn_outermost",
        "pirn_outermost:",
        "udf #0",
        ".cfi_endproc",
    )
}
