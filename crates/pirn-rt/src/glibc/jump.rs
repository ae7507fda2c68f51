//! The target of a `jmp_buf`.

use crate::arch;
use core::ffi::c_void;

/// Offset of the pointer guard in the thread control block (`tcbhead_t`,
/// `sysdeps/x86_64/nptl/tls.h`).
const POINTER_GUARD: usize = 0x30;
/// Index of the stack pointer in a `jmp_buf` (`JB_RSP`, `sysdeps/x86_64/jmpbuf-offsets.h`).
const STACK_POINTER: usize = 6;
/// The number of bits by which a pointer is rotated after the guard was added (`PTR_MANGLE`,
/// `sysdeps/unix/sysv/linux/x86_64/pointer_guard.h`).
const ROTATED: u32 = 17;

/// Returns the stack pointer that a jump to `buffer` restores.
///
/// # Safety
/// `setjmp` or one of its kin has filled in `buffer` on the running thread.
pub unsafe fn target(buffer: *const c_void) -> usize {
    // SAFETY: the caller's contract; each thread control block has a guard.
    unsafe {
        let mangled = buffer.cast::<usize>().add(STACK_POINTER).read();
        let guard = (arch::thread_pointer() + POINTER_GUARD) as *const usize;
        mangled.rotate_right(ROTATED) ^ guard.read()
    }
}
