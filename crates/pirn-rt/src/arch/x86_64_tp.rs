//! x86-64: the thread pointer, which is the FS base.
//!
//! An instruction sets it (`wrfsbase`, 5.6 ns) where the processor and the kernel allow programs to
//! use FSGSBASE, and a system call elsewhere (`arch_prctl`). Valgrind knows the system call only.

use core::arch::{asm, naked_asm};
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether a system call must set the thread pointer.
static BY_SYSTEM_CALL: AtomicBool = AtomicBool::new(false);

/// Returns whether a system call must set the thread pointer, and so [`switch`](super::switch)
/// cannot be used.
pub(crate) fn tp_by_system_call() -> bool {
    // Relaxed: settled at the start, before there are threads that could ask.
    BY_SYSTEM_CALL.load(Ordering::Relaxed)
}

/// Decides that a system call sets the thread pointer.
pub fn set_tp_by_system_call() {
    BY_SYSTEM_CALL.store(true, Ordering::Relaxed); // Relaxed: as above.
}

/// Returns whether user space may read and write the FS base here: Linux 5.9 and a processor with
/// FSGSBASE (Intel Ivy Bridge, AMD Steamroller). `AT_HWCAP2` bit 1, see
/// `arch/x86/include/uapi/asm/hwcap2.h`.
pub fn has_fsgsbase() -> bool {
    const HWCAP2_FSGSBASE: u64 = 1 << 1;
    // SAFETY: getauxval has no preconditions.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_FSGSBASE != 0 }
}

/// The thread pointer (FS base) of the running code.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let tp: usize;
    // SAFETY: the x86-64 TLS ABI keeps a pointer to the TCB in its own first word; reading it
    // has no effect, and cannot be merged with a reading before a switch (not `pure`).
    unsafe { asm!("mov {}, fs:[0]", out(reg) tp, options(nostack, preserves_flags)) };
    tp
}

/// Calls `function(data)` with `tp` as the thread pointer, on the same stack.
///
/// # Safety
/// `tp` is the thread pointer of the platform thread this runs on (or of a TLS block nobody else
/// is using). `function` must not unwind, and must not suspend the virtual thread it runs on.
pub unsafe fn call_with_tp(tp: usize, function: unsafe extern "C" fn(*mut u8), data: *mut u8) {
    // SAFETY: the caller's contract.
    unsafe {
        match tp_by_system_call() {
            false => call_with_tp_by_instruction(tp, function, data),
            true => call_with_tp_by_system_call(tp, function, data),
        }
    }
}

/// As [`call_with_tp`], unless [`tp_by_system_call`].
///
/// # Safety
/// As for `call_with_tp`.
#[unsafe(naked)]
pub(crate) unsafe extern "C" fn call_with_tp_by_instruction(
    tp: usize,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "rdfsbase rbx",
        "wrfsbase rdi",
        "mov rdi, rdx",
        "call rsi",
        "wrfsbase rbx",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "ret",
        ".cfi_endproc",
    )
}

/// As [`call_with_tp`], anywhere.
#[unsafe(naked)]
unsafe extern "C" fn call_with_tp_by_system_call(
    tp: usize,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) {
    naked_asm!(
        ".cfi_startproc",
        "push rbx",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset rbx, 0",
        "push r12",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r12, 0",
        "push r13",
        ".cfi_adjust_cfa_offset 8",
        ".cfi_rel_offset r13, 0",
        "mov rbx, fs:[0]",
        "mov r12, rsi",
        "mov r13, rdx",
        "mov rsi, rdi",
        "mov edi, {set_fs}",
        "mov eax, {arch_prctl}",
        "syscall",
        "test eax, eax",
        "jnz 2f",
        "mov rdi, r13",
        "call r12",
        "mov rsi, rbx",
        "mov edi, {set_fs}",
        "mov eax, {arch_prctl}",
        "syscall",
        "test eax, eax",
        "jnz 2f",
        "pop r13",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore r13",
        "pop r12",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore r12",
        "pop rbx",
        ".cfi_adjust_cfa_offset -8",
        ".cfi_restore rbx",
        "ret",
        "2:",
        "ud2", // the code after it would use the wrong thread-locals
        ".cfi_endproc",
        set_fs = const SET_FS,
        arch_prctl = const libc::SYS_arch_prctl,
    )
}

/// `ARCH_SET_FS`, arch/x86/include/uapi/asm/prctl.h.
pub(super) const SET_FS: i32 = 0x1002;
