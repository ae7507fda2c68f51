//! AArch64: registers of a thread that compiled code leaves alone. The thread pointer is
//! `tpidr_el0`, which programs may always write; a new thread begins with its spawner's
//! [`FloatControls`]; a switch carries [`Extra`] in some processes only.

use core::arch::asm;
use core::sync::atomic::{AtomicBool, Ordering};

/// Whether the stack pointer must take a way that valgrind understands.
static SLOWLY: AtomicBool = AtomicBool::new(false);

/// Returns whether [`switch_slowly`](super::switch_slowly) must switch: under valgrind.
pub(crate) fn switches_slowly() -> bool {
    // Relaxed: settled at the start, before there are threads that could ask.
    SLOWLY.load(Ordering::Relaxed)
}

/// Decides that [`switch_slowly`](super::switch_slowly) switches.
pub fn switch_slowly_from_now_on() {
    SLOWLY.store(true, Ordering::Relaxed); // Relaxed: before there are threads that could ask.
}

/// Returns whether an instruction sets the thread pointer.
pub fn has_tp_instruction() -> bool {
    true
}

/// The thread pointer of the running code.
#[inline(always)]
pub fn thread_pointer() -> usize {
    let tp: usize;
    // SAFETY: reads a register. It cannot be merged with a reading before a switch (not `pure`).
    unsafe { asm!("mrs {}, tpidr_el0", out(reg) tp, options(nostack, preserves_flags)) };
    tp
}

/// Calls `function(data)` with `tp` as the thread pointer, on the same stack.
///
/// # Safety
/// `tp` is the thread pointer of the platform thread this runs on (or of a TLS block that no other
/// thread uses). `function` must not unwind, and must not suspend the virtual thread it runs on.
#[inline]
pub unsafe fn call_with_tp(tp: usize, function: unsafe extern "C" fn(*mut u8), data: *mut u8) {
    // SAFETY: the caller's contract. One block, so that the compiler puts no thread-local of one
    // block into code that runs on the other.
    unsafe {
        asm!(
            "mrs x20, tpidr_el0",
            "msr tpidr_el0, {tp}",
            "blr {function}",
            "msr tpidr_el0, x20",
            tp = in(reg) tp,
            function = in(reg) function,
            inout("x0") data => _,
            out("x20") _,
            clobber_abi("C"),
        );
    }
}

/// Does what [`call_with_tp`] does.
///
/// # Safety
/// As for `call_with_tp`.
#[inline]
pub(crate) unsafe fn call_with_tp_by_instruction(
    tp: usize,
    function: unsafe extern "C" fn(*mut u8),
    data: *mut u8,
) {
    // SAFETY: the caller's contract.
    unsafe { call_with_tp(tp, function, data) }
}

/// FPCR: rounding, traps, treatment of tiny numbers.
#[derive(Clone, Copy)]
pub(crate) struct FloatControls(u64);

impl FloatControls {
    /// Reads the controls of the running thread.
    #[inline(always)]
    pub(crate) fn of_this_thread() -> FloatControls {
        let fpcr: u64;
        // SAFETY: reads a register.
        unsafe { asm!("mrs {}, fpcr", out(reg) fpcr, options(nostack, nomem, preserves_flags)) };
        FloatControls(fpcr)
    }

    /// Returns them as the switch keeps them on a stack.
    pub(super) fn word(self) -> u64 {
        self.0
    }
}

/// The rights of protection keys (POR_EL0), where the processor and the kernel have them.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Extra {
    rights: u64,
}

impl Extra {
    /// Reads the registers of the running code.
    pub(crate) fn read() -> Extra {
        let mut rights = 0;
        if has_keys() {
            // SAFETY: the processor has the register (S3_3_C10_C2_4); the kernel has enabled it.
            unsafe {
                asm!("mrs {}, s3_3_c10_c2_4", out(reg) rights,
                    options(nostack, nomem, preserves_flags));
            }
        }
        Extra { rights }
    }

    /// Loads them into the registers of the running code.
    ///
    /// # Safety
    /// The code that uses these registers from here on must be the code to which the values belong.
    pub(crate) unsafe fn load(self) {
        if Extra::read() != self {
            // SAFETY: as in `read`, which gives another value only where there are keys.
            unsafe {
                asm!("msr s3_3_c10_c2_4, {}", "isb", in(reg) self.rights,
                    options(nostack, preserves_flags));
            }
        }
    }

    /// Returns them as words, the second of which has no meaning here.
    pub(crate) fn words(self) -> [u64; 2] {
        [self.rights, 0]
    }

    /// Returns what [`words`](Self::words) has given.
    pub(crate) fn from_words([rights, _]: [u64; 2]) -> Extra {
        Extra { rights }
    }

    /// Returns whether this system call prepares for the use of such a register.
    pub fn is_prepared_by(number: libc::c_long, _: [usize; 6]) -> bool {
        number == libc::SYS_pkey_alloc
    }
}

/// Returns whether the kernel has enabled protection keys (FEAT_S1POE): Linux 6.12 and `AT_HWCAP2`
/// bit 63, see `arch/arm64/include/uapi/asm/hwcap.h`.
fn has_keys() -> bool {
    const HWCAP2_POE: u64 = 1 << 63;
    // SAFETY: getauxval has no preconditions.
    unsafe { libc::getauxval(libc::AT_HWCAP2) & HWCAP2_POE != 0 }
}
