//! AArch64: a register tells a function where to return to, and return addresses may be signed.
//!
//! A function that is compiled with pointer authentication puts a signature into the bits of its
//! return address that addresses do not use. How many these are depends on the kernel: addresses
//! of programs have 36 to 48 bits, and 52 with LVA, where code has 48 unless the program asks for
//! more. The kernel maps libraries at the top, so the highest address of known code tells.

use framehop::UnwindRegsNative;
use framehop::aarch64::PtrAuthMask;

/// Returns the registers of a thread: program counter, stack pointer, frame pointer (x29), link
/// register (x30). `highest` is the highest address of the code whose unwind information is known.
pub fn registers([_, sp, fp, lr]: [u64; 4], highest: u64) -> UnwindRegsNative {
    let mask = PtrAuthMask::from_max_known_address(highest.max(1));
    UnwindRegsNative::new_with_ptr_auth_mask(mask, lr, sp, fp)
}
