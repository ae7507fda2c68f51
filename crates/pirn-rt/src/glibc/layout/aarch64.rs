//! AArch64 (TLS variant I): `struct pthread` below the thread pointer, images above it.
//!
//! ```text
//!     tp - sizeof                        tp (tpidr_el0)   tp + 16          tp + used
//!          |  struct pthread: dtv, tid,     |  TCB: dtv,     |  TLS images,    |  reserve      |
//!          |  robust list; then a part      |  a word of     |  of the program |  for dlopen   |
//!          |  that is rarely touched        |  the linker's  |  libc, …        |  (untouched)  |
//! ```
//!
//! If pages have 4 KiB, a slot has a page boundary at the end of the images, so that one page has
//! the frames and all of this but the reserve. The reserve has a page of its own, which no thread
//! touches before a library is opened: more than the 512 bytes that the linker may give to
//! libraries that would do without (`glibc.rtld.optional_static_tls`). A dtv with more entries than
//! fit into its place is below `struct pthread`. Larger pages have room for all.

use super::super::symbols::find;
use super::super::tls::TCB_ALIGN;
use super::{Room, Sizes};
use crate::sys::SMALLEST_PAGE;
use core::ffi::{CStr, c_void};
use core::ops::Range;

pub const HEAD: usize = 320;
pub(crate) const ABOVE: Option<usize> = None;
pub(crate) const NEAREST: isize = 0;
/// The dtv pointer and a word of the linker's (AAELF64, `TLS`).
pub(crate) const TCB: usize = 16;
pub(crate) const DTV_POINTER: usize = 0;
pub(crate) const SELF_POINTER: bool = false;

#[inline(always)]
pub(crate) fn descriptor(tp: usize, size: usize) -> usize {
    tp - size
}

/// The other way round.
#[inline(always)]
pub(crate) fn tp_of(descriptor: usize, size: usize) -> usize {
    descriptor + size
}

#[inline(always)]
pub(crate) fn images(tp: usize, _used: usize) -> usize {
    tp
}

/// `at`: the distance of the library's data from the thread pointer.
pub(crate) fn reach(at: isize, size: usize) -> usize {
    at.unsigned_abs() + size
}

pub(crate) fn room(images: usize, reserve: usize, pthread: usize) -> Room {
    let used = images.next_multiple_of(TCB_ALIGN);
    let above = used + reserve.next_multiple_of(SMALLEST_PAGE);
    Room {
        below: pthread.next_multiple_of(16),
        above,
        images: above,
    }
}

impl Sizes {
    /// Returns the bytes of static TLS in a block of the linker's, the TCB included, if the sizes
    /// are as expected.
    pub(crate) fn images(&self) -> Option<usize> {
        (self.dtv == self.pthread + DTV_POINTER).then_some(self.total)
    }
}

/// Index of the stack pointer in a `jmp_buf` (`JB_SP`, `sysdeps/aarch64/jmpbuf-offsets.h`).
const STACK_POINTER: usize = 13;

/// Returns the stack pointer that a jump to `buffer` restores.
///
/// # Safety
/// `setjmp` or one of its kin has filled in `buffer` on the running thread.
pub unsafe fn jump_target(buffer: *const c_void) -> usize {
    // SAFETY: the caller's contract; the dynamic linker's guard is a word.
    unsafe {
        let mangled = buffer.cast::<usize>().add(STACK_POINTER).read();
        match find!(c"__pointer_chk_guard") {
            Ok(guard) => mangled ^ guard.cast::<usize>().read(),
            Err(_) => mangled,
        }
    }
}

/// Marks the abort handlers of critical sections on this machine; glibc's choice, `sys/rseq.h`.
pub(crate) const RSEQ_SIGNATURE: u32 = 0xd428_bc00;

/// The version of the first glibc on this processor, which all have.
pub const OLDEST: &CStr = c"GLIBC_2.17";

/// Functions with several symbol versions, and the version that we want.
pub(crate) const RENEWED: &[(&CStr, &CStr)] = &[];

/// The padding at the start of `struct pthread`, after two words: it "has no special purpose"
/// (`nptl/descr.h`), and glibc never touches it. 11 entries.
pub(crate) const DTV_HOME: Range<usize> = 16..192;

/// A dtv that is not at home is in the frames' page, other than the reserve.
pub(crate) const DTV_SHARE: usize = 4;
pub(crate) fn dtv_bytes(used: usize, reserve: usize) -> usize {
    (used + (reserve / DTV_SHARE).next_multiple_of(16)).max(DTV_HOME.len())
}

pub(crate) fn dtv_room(dtv_bytes: usize, _below: usize, _used: usize) -> usize {
    dtv_bytes
}

/// Where libc notes in a `sigjmp_buf`, after the registers, whether it has saved the mask; and
/// where the mask is.
pub const JUMP_SAVED: usize = 22 * 8;
pub const JUMP_SET: usize = JUMP_SAVED + 8;
