//! x86-64: the time stamp counter.

use core::arch::x86_64::{__cpuid, _rdtsc};

/// Returns the counter: some 8 ns, and no system call. It does not wait for the instructions
/// before it.
#[inline(always)]
pub(crate) fn counter() -> u64 {
    // SAFETY: programs may read it, unless they have forbidden it themselves (`PR_SET_TSC`).
    unsafe { _rdtsc() }
}

/// Returns whether the counter runs at one rate, whatever the processor's frequency, and in sleep.
/// Linux keeps those of all cores together, or says otherwise at the start.
pub(crate) fn has_steady_counter() -> bool {
    const POWER: u32 = 0x8000_0007;
    const INVARIANT: u32 = 1 << 8;
    let highest = __cpuid(0x8000_0000).eax;
    highest >= POWER && __cpuid(POWER).edx & INVARIANT != 0
}
