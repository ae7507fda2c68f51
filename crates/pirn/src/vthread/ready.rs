//! The right to run a virtual thread.

use super::Core;
use core::ptr::NonNull;

/// The right, and the duty, to run a virtual thread until it parks: there is one for each thread
/// that may run and does not yet.
///
/// It is made with the thread, and by the winner of its [handshake](super::handshake); queues,
/// timers and schedulers pass it on; mounting uses it up. While it exists the thread is alive,
/// off its stack, and its record is touched by nobody but the owner.
#[must_use = "a thread that nobody runs never goes on"]
pub(crate) struct Ready(NonNull<Core>);

// SAFETY: a virtual thread can be mounted on any platform thread.
unsafe impl Send for Ready {}

impl Ready {
    /// Makes the one right to run `thread`.
    ///
    /// # Safety
    /// The thread is alive, and its handshake or its making has just given the caller the duty to
    /// run it; or `thread` came from [`into_raw`](Self::into_raw), for the last time.
    #[inline(always)]
    pub(crate) unsafe fn new(thread: NonNull<Core>) -> Ready {
        Ready(thread)
    }

    /// Returns the thread, for a queue that keeps the right as a plain pointer.
    #[inline(always)]
    pub(crate) fn into_raw(self) -> NonNull<Core> {
        self.0
    }

    /// Returns the thread's record.
    #[inline(always)]
    pub(crate) fn core(&self) -> &Core {
        // SAFETY: alive, since it has yet to run: the contract of `new`.
        unsafe { self.0.as_ref() }
    }
}

/// Takes threads that may run, in place of the runtime's own queues.
pub(crate) trait Dispatch: Send + Sync {
    /// Takes the right to run a thread, and the duty.
    fn dispatch(&self, thread: Ready);
}
