//! x86-64 System V: the context switch, and what it leaves on a stack.
//!
//! A suspended context is nothing but a stack pointer. What is on its stack, growing down:
//!
//! ```text
//!   higher addresses
//!   |  frames of the suspended code                              |
//!   |  rbp                                                       |
//!   |  rbx                                                       |
//!   |  MXCSR (4 bytes) | x87 control word (2 bytes) | padding    |
//!   |  address to go on at                                       |  <- saved stack pointer
//!   lower addresses
//! ```
//!
//! All other registers are declared clobbered at the place of the switch, so the compiler saves
//! only those that are live there (the switch is inlined into its one or two callers). `asm!` does
//! not accept `rbx` and `rbp` as clobbers: the switch pushes them. MXCSR and the x87 control word
//! are callee-saved by the ABI and belong to the thread. The switch compares them and loads them
//! only if the two contexts differ, because a load serialises the pipeline. The comparison leaves
//! out MXCSR's six status flags: almost every floating point instruction changes them.
//!
//! A switch also writes the FS base, which makes the resumed code's thread-local storage current:
//! by an instruction ([`switch`]) or by a system call ([`switch_slowly`]).
//!
//! # What debuggers and unwinders see
//!
//! The switch has no unwind information of its own: it is part of its caller's frame, and `rsp` is
//! back where it was when the asm block ends. Inside the block, for some ten instructions, a
//! profiler's signal would find a frame that its tables do not describe; it gets a short backtrace,
//! not a crash, since unwinders check what they read. Each copy of the block notes its addresses in
//! a section of the program, so that our own dumps recognise it
//! (`in_switch`, in `walk.rs`).
//!
//! The outermost frame of a virtual thread is [`start_of_stack`], whose unwind information says
//! that it has no caller. A backtrace, a panic and gdb's `bt` end there. The carrier's own frames
//! are not reachable from a virtual thread's, on purpose: gdb rejects a backtrace whose frame
//! addresses do not rise ("previous frame inner to this frame"), and a carrier's stack may lie
//! below or above a slot.

use super::registers::{FloatControls, SET_FS};
use core::arch::{asm, naked_asm};

/// The switch, with the instructions that change the stack and the thread pointer: on the way they
/// leave the old stack pointer in `rax`.
macro_rules! switch {
    ([$($change:literal),+], $save:ident, $to:ident, $tp:ident; $($more:tt)*) => {
        asm!(
            "6:",
            // What `asm!` cannot clobber, and the floating point controls: onto our stack.
            "push rbp",
            "push rbx",
            "sub rsp, 8",
            "stmxcsr [rsp]",
            "fnstcw [rsp + 4]",
            // Where to go on: at 2, with the stack as it is now. From the store to `*save` on this
            // context could be resumed, but no other thread knows of it before the other side says
            // so.
            "lea rax, [rip + 2f]",
            "push rax",
            "mov [rdi], rsp",
            $($change,)+
            // Floating point controls: load on a difference only. The comparison comes this late
            // because the two stores above take a while.
            "mov ecx, [rax + 8]",
            "xor ecx, [rsp + 8]",
            "and ecx, 0xffc0",
            "movzx edx, word ptr [rax + 12]",
            "xor dx, [rsp + 12]",
            "or ecx, edx",
            "jnz 3f",
            // Go on where the other side left off. A jump, not `ret`: the processor predicts a
            // `ret` from the calls of this side, and would be wrong each time.
            "4:",
            "pop rax",
            "jmp rax",
            "3:",
            "ldmxcsr [rsp + 8]",
            "fldcw [rsp + 12]",
            "jmp 4b",
            // Another context has switched back, perhaps on another platform thread. It has loaded
            // our floating point controls, if they differed from its own.
            "2:",
            "add rsp, 8",
            "pop rbx",
            "pop rbp",
            // Where this copy of the switch begins and ends, as distances from the two places. `R`:
            // the linker keeps the section.
            "7:",
            ".pushsection pirn_switches, \"aR\", @progbits",
            ".balign 4",
            ".long 6b - ., 7b - .",
            ".popsection",
            $($more)*
            inout("rdi") $save => _,
            inout("rsi") $to => _,
            inout("rdx") $tp => _,
            out("r12") _, out("r13") _, out("r14") _, out("r15") _,
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
/// this call returns. Programs may use FSGSBASE.
#[inline(always)]
pub(crate) unsafe fn switch(save: *mut *mut u8, to: *mut u8, tp: usize) {
    // SAFETY: the caller's contract. Every register the other side may change is an output or
    // saved by hand; the stack is used below the red zone, as the absence of `nostack` demands.
    unsafe {
        switch!(
            // The other side's stack and thread-locals. `rax` still sees ours.
            ["mov rax, rsp", "mov rsp, rsi", "wrfsbase rdx"],
            save, to, tp;
        );
    }
}

/// Does what [`switch`] does by a system call, where programs may not use FSGSBASE. The stack
/// pointer is `way` for a moment: `to`, or under valgrind [`NOWHERE`](super::NOWHERE).
///
/// # Safety
/// As for `switch`.
#[inline(never)]
pub(crate) unsafe fn switch_slowly(save: *mut *mut u8, to: *mut u8, tp: usize, way: *mut u8) {
    // SAFETY: as in `switch`. The system call changes rax, rcx and r11.
    unsafe {
        switch!(
            [
                "mov r12, rsi",
                "mov rsi, rdx",
                "mov edi, {set_fs}",
                "mov eax, {arch_prctl}",
                "syscall",
                "test eax, eax",
                "jz 5f", // otherwise the other side would run with our thread-locals
                "ud2",
                "5:",
                "mov rax, rsp",
                "mov rsp, r8",
                "mov rcx, [r12]", // valgrind looks at the stack pointer when memory is read
                "mov rsp, r12"
            ],
            save, to, tp;
            set_fs = const SET_FS,
            arch_prctl = const libc::SYS_arch_prctl,
            inout("r8") way => _,
        );
    }
}

/// Where readers outside of the process find the registers of a suspended context, from its saved
/// stack pointer on; `saved.bytes` is where its own frames begin.
pub const SAVED: [(&str, usize); 4] = [
    ("saved.pc", 0),
    ("saved.rbx", 16),
    ("saved.rbp", 24),
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
        ".cfi_undefined rip",
        ".cfi_undefined rbp",
        "add rsp, 8", // the floating point controls
        "pop rax",    // entry
        "pop rdi",    // its argument; rsp is now `top`, 16-byte aligned
        "xor ebp, ebp",
        "call rax",
        ".globl pirn_outermost; .hidden pirn_outermost",
        "pirn_outermost:",
        "ud2",
        ".cfi_endproc",
    )
}
