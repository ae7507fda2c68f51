//! The right to run a virtual thread.

use super::Core;
use core::ptr::NonNull;

/// The right, and the duty, to run a virtual thread until it parks. One exists for each thread that
/// may run and does not run yet.
///
/// It is made together with the thread, and by the winner of the thread's
/// [handshake](super::handshake); queues, timers and schedulers pass it on; mounting consumes it.
/// While it exists the thread is alive and off its stack, and only the owner of the right touches
/// its record.
#[must_use = "a thread that nobody runs never goes on"]
pub struct Ready(NonNull<Core>);

// SAFETY: a virtual thread can be mounted on any platform thread.
unsafe impl Send for Ready {}

impl Ready {
    /// Makes the only right to run `thread`.
    ///
    /// # Safety
    /// The thread is alive, and its handshake or its creation has just given the caller the duty to
    /// run it; or `thread` came from [`into_raw`](Self::into_raw) and is used for the last time.
    #[inline(always)]
    pub(crate) unsafe fn new(thread: NonNull<Core>) -> Ready {
        Ready(thread)
    }

    /// Returns the thread, for a queue that keeps the right as a plain pointer.
    #[inline(always)]
    pub fn into_raw(self) -> NonNull<Core> {
        self.0
    }

    /// Returns the thread's record.
    #[inline(always)]
    pub fn core(&self) -> &Core {
        // SAFETY: alive, since it has yet to run, by the contract of `new`.
        unsafe { self.0.as_ref() }
    }
}

/// Accepts threads that may run, in place of the runtime's own queues.
pub trait Dispatch: Send + Sync {
    /// Accepts the right, and with it the duty, to run a thread.
    fn dispatch(&self, thread: Ready);
}
