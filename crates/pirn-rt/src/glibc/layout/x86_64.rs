//! x86-64 (TLS variant II): images below the thread pointer, `struct pthread` above it.
//!
//! ```text
//!        tp - below        tp - used          tp (FS base)        tp + HEAD       tp + sizeof
//!             |  reserve       |  TLS images      |  struct pthread    |   (rarely     |
//!             |  for dlopen    |  of the program, |  header, list,     |    touched    |
//!             |  (untouched)   |  libc, …         |  tid, robust list  |    tail)      |
//! ```
//!
//! A slot puts a page boundary at `tp + HEAD`.

use super::{Room, Sizes};
use crate::arch;
use core::ffi::{CStr, c_void};
use core::ops::Range;

pub const HEAD: usize = 832;
pub(crate) const ABOVE: Option<usize> = Some(HEAD + 4096);
pub(crate) const NEAREST: isize = -64;
pub(crate) const TCB: usize = 0;
/// `tcbhead_t.dtv`, x86-64 ABI.
pub(crate) const DTV_POINTER: usize = 8;
pub(crate) const SELF_POINTER: bool = true;

#[inline(always)]
pub(crate) fn descriptor(tp: usize, _size: usize) -> usize {
    tp
}

/// The other way round.
#[inline(always)]
pub(crate) fn tp_of(descriptor: usize, _size: usize) -> usize {
    descriptor
}

#[inline(always)]
pub(crate) fn images(tp: usize, used: usize) -> usize {
    tp.wrapping_sub(used) // `tp` may be 0, for distances.
}

/// `at`: the distance of the library's data from the thread pointer.
pub(crate) fn reach(at: isize, _size: usize) -> usize {
    at.unsigned_abs()
}

pub(crate) fn room(images: usize, reserve: usize, _pthread: usize) -> Room {
    Room {
        below: images + reserve,
        above: HEAD + 4096,
        images: images + reserve,
    }
}

impl Sizes {
    /// Returns the bytes of static TLS in a block of the linker's, if the sizes are as expected.
    pub(crate) fn images(&self) -> Option<usize> {
        let fits = self.pthread < self.total && self.dtv == DTV_POINTER;
        fits.then(|| self.total - self.pthread)
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

/// Marks the abort handlers of critical sections on this machine; glibc's choice, `sys/rseq.h`.
pub(crate) const RSEQ_SIGNATURE: u32 = 0x5305_3053;

/// The version of the first glibc on this processor, which all have.
pub const OLDEST: &CStr = c"GLIBC_2.2.5";

/// Functions with several symbol versions, and the version that we want: before 2.36
/// `dlsym(RTLD_NEXT)` returns the oldest (glibc bug 14932).
pub(crate) const RENEWED: &[(&CStr, &CStr)] = &[
    (c"lio_listio", c"GLIBC_2.4"),
    (c"lio_listio64", c"GLIBC_2.4"),
    (c"posix_spawn", c"GLIBC_2.15"),
    (c"posix_spawnp", c"GLIBC_2.15"),
    (c"pthread_cond_broadcast", c"GLIBC_2.3.2"),
    (c"pthread_cond_destroy", c"GLIBC_2.3.2"),
    (c"pthread_cond_signal", c"GLIBC_2.3.2"),
    (c"pthread_cond_timedwait", c"GLIBC_2.3.2"),
    (c"pthread_cond_wait", c"GLIBC_2.3.2"),
    (c"realpath", c"GLIBC_2.3"),
    (c"timer_create", c"GLIBC_2.3.3"),
    (c"timer_delete", c"GLIBC_2.3.3"),
];

pub(crate) const DTV_HOME: Range<usize> = 0..0;

/// The dtv grows into the reserve, which is above it, and into which the images grow down.
pub(crate) const DTV_SHARE: usize = 1;
pub(crate) fn dtv_bytes(used: usize, _reserve: usize) -> usize {
    used
}

pub(crate) fn dtv_room(dtv_bytes: usize, below: usize, used: usize) -> usize {
    (dtv_bytes + below).saturating_sub(used)
}

/// Where libc notes in a `sigjmp_buf`, after the registers, whether it has saved the mask; and
/// where the mask is.
pub const JUMP_SAVED: usize = 8 * 8;
pub const JUMP_SET: usize = JUMP_SAVED + 8;
