//! x86-64: state of a thread that few programs change: what a new thread begins with
//! ([`FloatControls`]), and what a switch carries in some processes only ([`Extra`]).

use super::{tp_by_system_call, x86_64_preempt};
use core::arch::asm;
use core::arch::x86_64::__cpuid_count;

/// MXCSR and the x87 control word: rounding, precision, traps, treatment of tiny numbers.
#[derive(Clone, Copy)]
pub(crate) struct FloatControls {
    mxcsr: u32,
    x87: u16,
}

impl FloatControls {
    /// Returns those of the running thread.
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
pub(crate) struct Extra {
    pub(crate) gs: u64,
    pub(crate) rights: u32,
}

/// arch/x86/include/uapi/asm/prctl.h
pub const SET_GS: usize = 0x1001;
const GET_GS: usize = 0x1004;

impl Extra {
    /// Returns those of the running code.
    pub(crate) fn read() -> Extra {
        Extra {
            gs: gs_base(),
            rights: match has_keys() {
                // SAFETY: the system has enabled protection keys.
                true => unsafe { x86_64_preempt::rights() },
                false => 0,
            },
        }
    }

    /// Makes them those of the running code.
    ///
    /// # Safety
    /// Code that uses them, from here on, is that to which they belong.
    pub(crate) unsafe fn load(self) {
        let now = Extra::read();
        // SAFETY: the caller's contract. Programs may use FSGSBASE, or the kernel sets the base;
        // the system has enabled protection keys if there is another value of their rights.
        unsafe {
            if now.gs != self.gs {
                match tp_by_system_call() {
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
        match tp_by_system_call() {
            false => asm!("rdgsbase {}", out(reg) base, options(nostack, preserves_flags)),
            true => {
                let place = (&raw mut base).addr();
                super::syscall(libc::SYS_arch_prctl, [GET_GS, place, 0, 0, 0, 0]);
            }
        }
    }
    base
}

/// Returns whether the system has enabled protection keys (OSPKE).
fn has_keys() -> bool {
    const OSPKE: u32 = 1 << 4;
    __cpuid_count(7, 0).ecx & OSPKE != 0
}
