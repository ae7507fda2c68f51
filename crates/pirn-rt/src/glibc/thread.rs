//! What glibc keeps for each thread in its TLS, beside the data of libraries: the destructors of
//! thread-locals, the text of `dlerror`, the guard of pointers in a `jmp_buf`, and the area of
//! restartable sequences.

use super::symbols::{find, look_up, real};
use crate::arch;
use crate::sys::call;
use core::ffi::c_void;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Runs the destructors that `__cxa_thread_atexit_impl` has registered for the running thread.
pub(crate) fn run_destructors() {
    // SAFETY: glibc's function, without arguments; it works on the running TLS block.
    unsafe { real!(unwinding fn __call_tls_dtors() -> ()) };
}

/// The distance below the thread pointer of the word that leads to the text of `dlerror`; 0: not
/// found.
///
/// libc frees that memory at the end of a platform thread, in a function that is its own.
static DLERROR_BELOW: AtomicUsize = AtomicUsize::new(0);

/// Looks for the word of `dlerror`.
pub(super) fn prepare_dlerror() {
    // `find!` would not do: this is the calling thread's word.
    if let Ok(address) = look_up(c"__libc_dlerror_result") {
        // Relaxed: a number, and published with the runtime.
        DLERROR_BELOW.store(arch::thread_pointer() - address.addr(), Relaxed);
    }
}

/// Frees what `dlerror` would return to the running virtual thread, which ends.
#[inline]
pub(crate) fn release_dlerror() {
    let below = DLERROR_BELOW.load(Relaxed); // Relaxed: as in `prepare_dlerror`.
    // SAFETY: a word of libc's static TLS, which each thread has.
    if below != 0 && unsafe { ((arch::thread_pointer() - below) as *const usize).read() } != 0 {
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
pub unsafe fn jump_target(buffer: *const c_void) -> usize {
    // SAFETY: the caller's contract; each thread control block has a guard.
    unsafe {
        let mangled = buffer.cast::<usize>().add(STACK_POINTER).read();
        let guard = (arch::thread_pointer() + POINTER_GUARD) as *const usize;
        mangled.rotate_right(ROTATED) ^ guard.read()
    }
}

/// Makes the kernel use the running TLS block's area of restartable sequences in place of the area
/// of the block at `old_tp`, which the running thread has left and which may be freed. For the
/// child of a fork. Does nothing if no area is registered.
///
/// glibc (since 2.35) registers the area for every thread. Then the kernel writes the number of the
/// processor to it whenever the thread is scheduled, and kills the process if it cannot. The
/// registered area is the platform thread's, also while virtual threads are mounted.
pub fn move_rseq_here(old_tp: usize) {
    /// Marks the abort handlers of critical sections on this machine; glibc's choice, `sys/rseq.h`.
    const SIGNATURE: u32 = 0x5305_3053;
    const UNREGISTER: i32 = 1;
    /// The length that glibc registers, enough for all that the kernel knows at present.
    const LENGTH: usize = 32;
    let Some(offset) = rseq_offset() else { return };
    let area = |tp: usize| tp.wrapping_add_signed(offset);
    let (old, new) = (area(old_tp), area(arch::thread_pointer()));
    // SAFETY: the areas lie inside the TLS blocks; no code is in a critical section here.
    unsafe {
        if call!(libc::SYS_rseq, old, LENGTH, UNREGISTER, SIGNATURE).is_ok() {
            let _ = call!(libc::SYS_rseq, new, LENGTH, 0, SIGNATURE);
        }
    }
}

/// Returns the offset of the area of restartable sequences from the thread pointer.
fn rseq_offset() -> Option<isize> {
    let (offset, size) = (find!(c"__rseq_offset").ok()?, find!(c"__rseq_size").ok()?);
    // SAFETY: data symbols of these types, constant after the start of the program.
    unsafe { (size.cast::<u32>().read() > 0).then(|| offset.cast::<isize>().read()) }
}
