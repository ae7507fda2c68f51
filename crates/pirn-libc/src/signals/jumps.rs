//! `sigsetjmp`: keeping the mask of a virtual thread in a `sigjmp_buf`.
//!
//! libc saves and restores the kernel's mask, the carrier's: all carriers have the same one, so
//! that does no harm. The thread's own is kept in the part of the set that the kernel does not use.
//!
//! ```text
//!   offset  0         64          72            80            184    192        200
//!           +---------+-----------+-------------+-------------+------+----------+
//!           | regis-  | saved the | the kernel's| of the set, | mark | thread's |
//!           | ters    | mask?     | mask        | not used    |      | mask     |
//!           +---------+-----------+-------------+-------------+------+----------+
//! ```

use crate::signals::masks;
use core::ffi::{c_int, c_void};
use core::sync::atomic::Ordering::SeqCst;
use pirn_rt::arch;
use pirn_rt::glibc::symbols::Real;
use pirn_rt::vthread;

/// Says that a thread's mask follows.
const MARK: u64 = u64::from_ne_bytes(*b"pirnmask");
const PLACE: usize = 184;
/// Where libc notes whether it has saved the mask.
const SAVED: usize = 64;

static SIGSETJMP: Real = Real::new(c"__sigsetjmp");

/// Notes the mask in a buffer. Returns libc's function, which is to fill in the rest.
///
/// # Safety
/// As for `__sigsetjmp`.
unsafe extern "C" fn note(buffer: *mut c_void, saves_mask: c_int) -> *mut c_void {
    if saves_mask != 0
        && let Some(thread) = vthread::current()
    {
        let mask = thread.signals.mask.load(SeqCst);
        // SAFETY: the caller's contract: a whole buffer, 200 bytes and aligned.
        unsafe {
            buffer
                .byte_add(PLACE)
                .cast::<[u64; 2]>()
                .write([MARK, mask])
        };
    }
    SIGSETJMP.get()
}

/// Takes the mask with which a virtual thread goes on after a jump to the buffer.
///
/// # Safety
/// A buffer that is jumped to.
pub(crate) unsafe fn restore(buffer: *const c_void) {
    let Some(thread) = vthread::current() else {
        return;
    };
    // SAFETY: the caller's contract.
    unsafe {
        let saved = buffer.byte_add(SAVED).cast::<c_int>().read() != 0;
        if saved {
            let [mark, mask] = buffer.byte_add(PLACE).cast::<[u64; 2]>().read();
            if mark == MARK {
                masks::set_quietly(&thread, mask);
            }
        }
    }
}

arch::forward! {
    /// `__sigsetjmp`, which `sigsetjmp` is a macro for.
    ///
    /// # Safety
    /// As for libc's function of this name.
    __sigsetjmp => note
}

/// Looks up libc's function, which cannot be done in a signal handler.
pub(super) fn prepare() {
    SIGSETJMP.get();
}
