//! x86-64: return addresses are on the stack.

use framehop::UnwindRegsNative;

/// Returns the registers of a thread: program counter, stack pointer, frame pointer. Others play no
/// part here.
pub fn registers([pc, sp, bp, _]: [u64; 4], _highest: u64) -> UnwindRegsNative {
    UnwindRegsNative::new(pc, sp, bp)
}
