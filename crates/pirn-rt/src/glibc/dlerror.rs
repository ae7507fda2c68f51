//! What `dlerror` would return to a thread that ends.
//!
//! Since glibc 2.34 a word of libc's TLS leads to memory that libc frees at the end of a platform
//! thread, in a function that is its own. Earlier versions free it by a thread-specific key.

use super::symbols::find;
use crate::arch;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The distance of the word below the thread pointer; 0: there is none.
static BELOW: AtomicUsize = AtomicUsize::new(0);

/// Looks for the word.
pub(crate) fn prepare() {
    if let Ok(address) = find(c"__libc_dlerror_result") {
        // Relaxed: a number, and published with the runtime. The calling thread's word.
        BELOW.store(arch::thread_pointer() - address.addr(), Relaxed);
    }
}

/// Frees the running virtual thread's memory.
#[inline]
pub(crate) fn release() {
    let below = BELOW.load(Relaxed); // Relaxed: as in `prepare`.
    // SAFETY: a word of libc's static TLS, which each thread has.
    if below != 0 && unsafe { ((arch::thread_pointer() - below) as *const usize).read() } != 0 {
        forget();
    }
}

/// Makes libc free it: an error's text is freed when it is asked for the second time.
#[cold]
fn forget() {
    const NO_MODE: i32 = 1 << 30;
    // SAFETY: valid arguments but for the mode, which is refused before anything is done.
    unsafe {
        libc::dlopen(core::ptr::null(), NO_MODE);
        libc::dlerror();
        libc::dlerror();
    }
}
