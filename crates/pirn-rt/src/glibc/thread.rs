//! What glibc keeps for each thread in its TLS, beside the data of libraries: the destructors of
//! thread-locals, the text of `dlerror`, the guard of pointers in a `jmp_buf`, and the area of
//! restartable sequences.

use super::layout::RSEQ_SIGNATURE;
use super::symbols::{find, look_up, real};
use crate::arch;
use crate::sys::call;
use core::sync::atomic::{AtomicIsize, Ordering::Relaxed};

/// Runs the destructors that `__cxa_thread_atexit_impl` has registered for the running thread.
pub(crate) fn run_destructors() {
    // SAFETY: glibc's function, without arguments; it works on the running TLS block.
    unsafe { real!(unwinding fn __call_tls_dtors() -> ()) };
}

/// The distance from the thread pointer of the word that leads to the text of `dlerror`; 0: not
/// found.
///
/// libc frees that memory at the end of a platform thread, in a function that is its own.
static DLERROR_AT: AtomicIsize = AtomicIsize::new(0);

/// Looks for the word of `dlerror`.
pub(super) fn prepare_dlerror() {
    // `find!` would not do: this is the calling thread's word.
    if let Ok(address) = look_up(c"__libc_dlerror_result") {
        let distance = address.addr().wrapping_sub(arch::thread_pointer());
        // Relaxed: a number, and published with the runtime.
        DLERROR_AT.store(distance as isize, Relaxed);
    }
}

/// Frees what `dlerror` would return to the running virtual thread, which ends.
#[inline]
pub(crate) fn release_dlerror() {
    let at = DLERROR_AT.load(Relaxed); // Relaxed: as in `prepare_dlerror`.
    let word = arch::thread_pointer().wrapping_add_signed(at) as *const usize;
    // SAFETY: a word of libc's static TLS, which each thread has.
    if at != 0 && unsafe { word.read() } != 0 {
        forget_dlerror();
    }
}

/// Makes libc free the text of an error: libc frees it when it is asked for the second time.
#[cold]
fn forget_dlerror() {
    const NO_MODE: i32 = 1 << 30;
    // SAFETY: `dlopen` refuses the mode before it looks at the name, which may be null anyway.
    unsafe {
        libc::dlopen(core::ptr::null(), NO_MODE);
        libc::dlerror();
        libc::dlerror();
    }
}

pub use super::layout::{JUMP_SAVED, JUMP_SET, OLDEST, jump_target};

/// Makes the kernel use the running TLS block's area of restartable sequences in place of the area
/// of the block at `old_tp`, which the running thread has left and which may be freed. For the
/// child of a fork. If the kernel has no such areas (an emulator), the block says so.
///
/// glibc (since 2.35) registers the area for every thread. Then the kernel writes the number of the
/// processor to it whenever the thread is scheduled, and kills the process if it cannot. The
/// registered area is the platform thread's, also while virtual threads are mounted.
pub fn move_rseq_here(old_tp: usize) {
    const UNREGISTER: i32 = 1;
    /// The length that glibc registers, enough for all that the kernel knows at present.
    const LENGTH: usize = 32;
    /// glibc's value of `cpu_id`: a thread that has it in its area registers none for the threads
    /// that it makes. For any other value it must succeed in that.
    const REGISTRATION_FAILED: i32 = -2;
    const CPU_ID: usize = 4;
    let Some((offset, is_registered)) = rseq() else {
        return;
    };
    let area = |tp: usize| tp.wrapping_add_signed(offset);
    let (old, new) = (area(old_tp), area(arch::thread_pointer()));
    // SAFETY: the areas lie inside the TLS blocks; no code is in a critical section here.
    unsafe {
        if !is_registered {
            *((new + CPU_ID) as *mut i32) = REGISTRATION_FAILED;
        } else if call!(libc::SYS_rseq, old, LENGTH, UNREGISTER, RSEQ_SIGNATURE).is_ok() {
            let _ = call!(libc::SYS_rseq, new, LENGTH, 0, RSEQ_SIGNATURE);
        }
    }
}

/// Returns the offset of the area of restartable sequences from the thread pointer, and whether
/// glibc has registered it.
fn rseq() -> Option<(isize, bool)> {
    let (offset, size) = (find!(c"__rseq_offset").ok()?, find!(c"__rseq_size").ok()?);
    // SAFETY: data symbols of these types, constant after the start of the program.
    unsafe { Some((offset.cast::<isize>().read(), size.cast::<u32>().read() > 0)) }
}
