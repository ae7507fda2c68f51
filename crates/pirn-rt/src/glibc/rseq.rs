//! Restartable sequences: the area in each thread's TLS block in which the kernel stores the number
//! of its processor.
//!
//! glibc registers it for every thread (since 2.35). Then the kernel writes to it whenever the
//! thread is scheduled, and kills the process if it cannot. The registered area is the platform
//! thread's, also while virtual threads are mounted.

use super::symbols::find;
use crate::arch;
use crate::sys::call;

/// Marks the abort handlers of critical sections on this machine; glibc's choice, `sys/rseq.h`.
const SIGNATURE: u32 = 0x5305_3053;
const UNREGISTER: i32 = 1;
/// The length that glibc registers, enough for all that the kernel knows at present.
const LENGTH: usize = 32;

/// Makes the kernel use the running TLS block's area in place of that of the block at `old_tp`,
/// which the running thread has left and which may be freed. For the child of a fork. Does nothing
/// if no area is registered.
pub fn move_here(old_tp: usize) {
    let Some(offset) = offset() else { return };
    let area = |tp: usize| tp.wrapping_add_signed(offset);
    // SAFETY: the areas lie inside the TLS blocks; no code is in a critical section here.
    unsafe {
        if call!(libc::SYS_rseq, area(old_tp), LENGTH, UNREGISTER, SIGNATURE).is_ok() {
            let _ = call!(
                libc::SYS_rseq,
                area(arch::thread_pointer()),
                LENGTH,
                0,
                SIGNATURE
            );
        }
    }
}

/// Returns the offset of the area from the thread pointer.
fn offset() -> Option<isize> {
    let (offset, size) = (find(c"__rseq_offset").ok()?, find(c"__rseq_size").ok()?);
    // SAFETY: data symbols of these types, constant after the start of the program.
    unsafe { (size.cast::<u32>().read() > 0).then(|| offset.cast::<isize>().read()) }
}
