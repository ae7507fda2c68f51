//! x86-64: registers of a thread that compiled code leaves alone. The thread pointer is the FS
//! base; a new thread begins with its spawner's [`FloatControls`]; a switch carries [`Extra`] in
//! some processes only.
//!
//! An instruction sets the thread pointer (`wrfsbase`, 5.6 ns) where the processor and the kernel
//! allow programs to use FSGSBASE, and a system call elsewhere (`arch_prctl`). Valgrind knows the
//! system call only.

use super::preempt;
use core::arch::asm;
use core::arch::x86_64::__cpuid_count;
use core::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Whether a system call must set the thread pointer.
static BY_SYSTEM_CALL: AtomicBool = AtomicBool::new(false);

/// Returns whether a system call must set the thread pointer, and so [`switch`](super::switch)
/// cannot be used.
pub(crate) fn switches_slowly() -> bool {
    // Relaxed: settled at the start, before there are threads that could ask.
    BY_SYSTEM_CALL.load(Ordering::Relaxed)
}

/// Decides that a system call sets the thread pointer.
pub fn switch_slowly_from_now_on() {
    BY_SYSTEM_CALL.store(true, Ordering::Relaxed); // Relaxed: before there are threads that could ask.
}

/// Returns whether user space may read and write the FS base here: Linux 5.9 and a processor with
/// FSGSBASE (Intel Ivy Bridge, AMD Steamroller). `AT_HWCAP2` bit 1, see
/// `arch/x86/include/uapi/asm/hwcap2.h`.
pub fn has_tp_instruction() -> bool {
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
/// `tp` is the thread pointer of the platform thread this runs on (or of a TLS block that no other
/// thread uses). `function` must not unwind, and must not suspend the virtual thread it runs on.
pub unsafe fn call_with_tp(tp: usize, function: unsafe extern "C" fn(*mut u8), data: *mut u8) {
    // SAFETY: the caller's contract.
    unsafe {
        match switches_slowly() {
            false => call_with_tp_by_instruction(tp, function, data),
            true => call_with_tp_by_system_call(tp, function, data),
        }
    }
}

/// Does what [`call_with_tp`] does, unless [`switches_slowly`].
///
/// # Safety
/// As for `call_with_tp`.
#[inline]
pub(crate) unsafe fn call_with_tp_by_instruction(
    tp: usize,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) {
    // SAFETY: the caller's contract. One block, so that the compiler puts no thread-local of one
    // block into code that runs on the other.
    unsafe {
        asm!(
            "rdfsbase r12",
            "wrfsbase {tp}",
            "call {function}",
            "wrfsbase r12",
            tp = in(reg) tp,
            function = in(reg) function,
            inout("rdi") data => _,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// Does what [`call_with_tp`] does, on any machine.
#[cold]
unsafe fn call_with_tp_by_system_call(
    tp: usize,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) {
    // SAFETY: as in `call_with_tp_by_instruction`. The system call changes rax, rcx and r11.
    unsafe {
        asm!(
            "mov r12, fs:[0]",
            "mov edi, {set_fs}",
            "mov eax, {arch_prctl}",
            "syscall",
            "test eax, eax",
            "jnz 2f",
            "mov rdi, r14",
            "call r13",
            "mov rsi, r12",
            "mov edi, {set_fs}",
            "mov eax, {arch_prctl}",
            "syscall",
            "test eax, eax",
            "jz 3f",
            "2:",
            "ud2", // the code after it would use the wrong thread-locals
            "3:",
            set_fs = const SET_FS,
            arch_prctl = const libc::SYS_arch_prctl,
            inout("rsi") tp => _,
            in("r13") function,
            in("r14") data,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// `ARCH_SET_FS`, arch/x86/include/uapi/asm/prctl.h.
pub(super) const SET_FS: i32 = 0x1002;

/// MXCSR and the x87 control word: rounding, precision, traps, treatment of tiny numbers.
#[derive(Clone, Copy)]
pub(crate) struct FloatControls {
    mxcsr: u32,
    x87: u16,
}

impl FloatControls {
    /// Reads the controls of the running thread.
    #[inline(always)]
    pub(crate) fn of_this_thread() -> FloatControls {
        let mut this = FloatControls { mxcsr: 0, x87: 0 };
        // SAFETY: each instruction writes to its place.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &raw mut this.mxcsr, options(nostack, preserves_flags));
            asm!("fnstcw [{}]", in(reg) &raw mut this.x87, options(nostack, preserves_flags));
        }
        this
    }

    /// Returns them as the switch keeps them on a stack.
    pub(super) fn word(self) -> u64 {
        u64::from(self.mxcsr) | u64::from(self.x87) << 32
    }
}

/// The GS base, which no compiler uses on Linux by itself, and the rights of protection keys.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    gs: u64,
    rights: u32,
}

/// arch/x86/include/uapi/asm/prctl.h
const SET_GS: usize = 0x1001;
const GET_GS: usize = 0x1004;

impl Extra {
    /// Returns them as words.
    pub(crate) fn words(self) -> [u64; 2] {
        [self.gs, self.rights.into()]
    }

    /// Returns what [`words`](Self::words) has given.
    pub(crate) fn from_words([gs, rights]: [u64; 2]) -> Extra {
        let rights = rights as u32;
        Extra { gs, rights }
    }

    /// Returns whether this system call prepares for the use of such a register.
    pub fn is_prepared_by(number: libc::c_long, args: [usize; 6]) -> bool {
        match number {
            libc::SYS_arch_prctl => args[0] == SET_GS,
            number => number == libc::SYS_pkey_alloc,
        }
    }

    /// Reads the registers of the running code.
    pub(crate) fn read() -> Extra {
        Extra {
            gs: gs_base(),
            rights: match has_keys() {
                // SAFETY: the system has enabled protection keys.
                true => unsafe { preempt::rights() },
                false => 0,
            },
        }
    }

    /// Loads them into the registers of the running code.
    ///
    /// # Safety
    /// The code that uses these registers from here on must be the code to which the values belong.
    pub(crate) unsafe fn load(self) {
        let now = Extra::read();
        // SAFETY: the caller's contract. Programs may use FSGSBASE, or the kernel sets the base;
        // the system has enabled protection keys if there is another value of their rights.
        unsafe {
            if now.gs != self.gs {
                match switches_slowly() {
                    false => {
                        asm!("wrgsbase {}", in(reg) self.gs, options(nostack, preserves_flags))
                    }
                    true => {
                        let args = [SET_GS, self.gs as usize, 0, 0, 0, 0];
                        super::syscall(libc::SYS_arch_prctl, args);
                    }
                }
            }
            if now.rights != self.rights {
                asm!("wrpkru", in("eax") self.rights, in("ecx") 0, in("edx") 0,
                    options(nostack, preserves_flags));
            }
        }
    }
}

fn gs_base() -> u64 {
    let mut base = 0_u64;
    // SAFETY: as in `Extra::load`; the kernel writes one word.
    unsafe {
        match switches_slowly() {
            false => asm!("rdgsbase {}", out(reg) base, options(nostack, preserves_flags)),
            true => {
                let place = (&raw mut base).addr();
                super::syscall(libc::SYS_arch_prctl, [GET_GS, place, 0, 0, 0, 0]);
            }
        }
    }
    base
}

/// Returns whether the system has enabled protection keys (OSPKE). Asks the processor once: where a
/// switch carries [`Extra`] each one reads the registers, and a hypervisor takes 4 us to answer.
pub(super) fn has_keys() -> bool {
    const OSPKE: u32 = 1 << 4;
    /// 0: not known; 1: no; 2: yes.
    static HAS_KEYS: AtomicU8 = AtomicU8::new(0);
    // Relaxed: carries no other data, and each thread finds out the same.
    match HAS_KEYS.load(Ordering::Relaxed) {
        0 => {
            let has = __cpuid_count(7, 0).ecx & OSPKE != 0;
            HAS_KEYS.store(1 + u8::from(has), Ordering::Relaxed);
            has
        }
        known => known == 2,
    }
}
