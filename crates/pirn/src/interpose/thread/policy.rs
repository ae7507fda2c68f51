//! What `pthread_create` makes: a platform thread, unless the process has asked for virtual ones.
//!
//! Programs that use `pirn::thread` never ask. A library that is preloaded, to run programs that
//! know nothing of virtual threads, does so in its initialiser.

use crate::runtime;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// Whether `pthread_create` makes virtual threads.
static VIRTUAL: AtomicBool = AtomicBool::new(false);

/// Has `pthread_create` and `thrd_create` make virtual threads from now on (`on` is not 0), or
/// platform threads again. For the library that is preloaded, and for tests.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_make_pthreads_virtual(on: c_int) {
    if on != 0 {
        super::leaving::prepare();
    }
    // Relaxed: complete in itself; who creates threads at the same time gets either kind.
    VIRTUAL.store(on != 0, Relaxed);
}

/// Returns whether `pthread_create` makes virtual threads.
#[inline]
pub(in crate::interpose) fn is_on() -> bool {
    VIRTUAL.load(Relaxed) // Relaxed: as above.
}

/// Returns whether the threads of the program are counted: all of them can be seen. In the child of
/// a fork all are libc's, which counts them itself.
pub(super) fn counts() -> bool {
    is_on() && !runtime::has_forked()
}

/// Why a thread of the program is a platform thread although the process wants virtual ones.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(usize)]
pub(super) enum Why {
    /// Its stack is the program's (`pthread_attr_setstack`).
    OwnStack,
    /// It asks for a scheduling policy or a priority.
    Scheduling,
    /// It is bound to some CPUs.
    Affinity,
    /// Its stack is larger than any slot.
    LargeStack,
    /// There is no runtime: it could not start here, or this is the child of a fork.
    NoRuntime,
    /// It was created in a signal handler.
    InHandler,
}

/// What has been made: virtual threads, then platform threads by their reasons.
static MADE: [AtomicU64; 7] = [const { AtomicU64::new(0) }; 7];

/// Counts a virtual thread.
pub(super) fn count_virtual() {
    MADE[0].fetch_add(1, Relaxed); // Relaxed: for people to read.
}

/// Counts a platform thread.
pub(super) fn count_platform(why: Why) {
    MADE[1 + why as usize].fetch_add(1, Relaxed); // Relaxed: as above.
}

/// Writes how many threads have been made so far: virtual ones, then platform threads with their
/// own stack, a scheduling policy, an affinity, too large a stack, without a runtime, in a signal
/// handler. Returns the number of counts, of which at most `room` are written.
///
/// # Safety
/// `counts` is valid for `room` writes.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub unsafe extern "C" fn pirn_count_pthreads(counts: *mut u64, room: usize) -> usize {
    for (i, made) in MADE.iter().enumerate().take(room) {
        // SAFETY: the caller's contract.
        unsafe { counts.add(i).write(made.load(Relaxed)) }; // Relaxed: as above.
    }
    MADE.len()
}
