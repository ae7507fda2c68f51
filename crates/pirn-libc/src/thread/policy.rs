//! What `pthread_create` makes: a platform thread, unless the process has asked for virtual ones.
//!
//! Programs that use `pirn::thread` never ask. A library that is preloaded, to run programs that
//! know nothing of virtual threads, does so in its initialiser.

use super::leaving;
use core::ffi::c_int;
use core::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use pirn_rt::notices;
use std::io;

/// Whether `pthread_create` makes virtual threads.
static VIRTUAL: AtomicBool = AtomicBool::new(false);

/// Has `pthread_create` and `thrd_create` make virtual threads from now on (`on` is not 0), or
/// platform threads again. For the library that is preloaded, and for tests.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_make_pthreads_virtual(on: c_int) {
    if on != 0 {
        leaving::prepare();
        super::robust::prepare();
    }
    // Relaxed: complete in itself; threads that are created at the same time are of either kind.
    VIRTUAL.store(on != 0, Relaxed);
}

/// Returns whether `pthread_create` makes virtual threads.
#[inline]
pub fn is_on() -> bool {
    VIRTUAL.load(Relaxed) // Relaxed: as above.
}

/// Returns whether the threads of the program are counted: all of them can be seen.
pub(super) fn counts() -> bool {
    is_on()
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
    /// There is no runtime: it could not start.
    NoRuntime,
    /// It was created in a signal handler.
    InHandler,
    /// Somebody wants it so, by the library that makes it, or by `pirn.h`.
    Chosen,
    /// It is of a library that makes its system calls itself.
    OwnCalls,
}

impl Why {
    /// The reasons, in their order, as they follow a number of threads.
    pub(super) const TEXTS: [&str; REASONS] = [
        "with a stack of the program's",
        "with a scheduling policy or priority",
        "bound to CPUs",
        "with a stack too large for a virtual thread",
        "without a runtime: it could not start",
        "made in a signal handler",
        "by choice",
        "of a library that makes its system calls itself",
    ];
}

/// The number of reasons.
const REASONS: usize = Why::OwnCalls as usize + 1;

/// What has been made: virtual threads, then platform threads by their reasons.
static MADE: [AtomicU64; 1 + REASONS] = [const { AtomicU64::new(0) }; 1 + REASONS];

/// Counts a virtual thread.
pub(super) fn count_virtual() {
    MADE[0].fetch_add(1, Relaxed); // Relaxed: for people to read, as all that follows.
}

/// Counts a platform thread.
pub(super) fn count_platform(why: Why) {
    MADE[1 + why as usize].fetch_add(1, Relaxed); // Relaxed: as above.
}

/// Reports, once, why there is no runtime, and returns that as the reason for a platform thread.
#[cold]
pub(super) fn no_runtime(error: &io::Error) -> Why {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    if error.kind() == io::ErrorKind::OutOfMemory {
        return Why::NoRuntime; // Nor is there memory to say so. libc's thread fails as natively.
    }
    if !REPORTED.swap(true, Relaxed) {
        notices::write(&format!(
            "{error}; the program's threads are platform threads"
        ));
    }
    Why::NoRuntime
}

/// What has been made so far.
pub(super) struct Made {
    pub(super) virtuals: u64,
    /// Platform threads, by their reasons.
    pub(super) platform: [u64; REASONS],
    /// The most at once, without the first thread of the program.
    pub(super) most: usize,
}

impl Made {
    pub(super) fn is_empty(&self) -> bool {
        self.virtuals == 0 && self.platform.iter().all(|&count| count == 0)
    }
}

/// Returns what has been made so far.
pub(super) fn made() -> Made {
    let count = |place: usize| MADE[place].load(Relaxed);
    Made {
        virtuals: count(0),
        platform: core::array::from_fn(|why| count(1 + why)),
        most: leaving::most(),
    }
}

/// Begins to count anew.
pub(super) fn forget() {
    for made in &MADE {
        made.store(0, Relaxed);
    }
    leaving::forget_most();
}

/// Writes how many threads have been made so far: virtual ones, then platform threads with their
/// own stack, a scheduling policy, an affinity, too large a stack, without a runtime, in a signal
/// handler, by choice, of a library that makes its system calls itself. Returns the number of
/// counts, of which at most `room` are written.
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
