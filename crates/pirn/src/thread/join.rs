//! Waiting for a thread's end, and its result.

use super::{Thread, detached};
use crate::blocking::wait::Wait;
use crate::vthread::{self, Cell, ThreadRef};
use core::fmt;
use core::marker::PhantomData;
use core::ptr::NonNull;
use std::panic::resume_unwind;

/// The right to wait for a virtual thread's end and take its result.
///
/// Dropping it detaches the thread.
///
/// # Examples
/// ```
/// let handle = pirn::thread::spawn(|| panic!("oh no"));
/// let payload = handle.join().unwrap_err();
/// assert_eq!(*payload.downcast_ref::<&str>().unwrap(), "oh no");
/// ```
pub struct JoinHandle<T>(RawHandle<T>);

impl<T> JoinHandle<T> {
    pub(crate) fn new(thread: ThreadRef) -> JoinHandle<T> {
        JoinHandle(RawHandle::new(thread))
    }

    /// Waits for the thread to end and returns its result. The result is `Err` with the payload if the
    /// thread panicked.
    ///
    /// When this returns, the thread's thread-locals have been destroyed.
    ///
    /// # Errors
    /// The panic's payload.
    pub fn join(self) -> super::Result<T> {
        self.0.join()
    }

    /// The thread.
    pub fn thread(&self) -> &Thread {
        self.0.thread()
    }

    /// Whether the thread has ended: [`join`](Self::join) would not block.
    pub fn is_finished(&self) -> bool {
        self.0.is_finished()
    }
}

impl<T> fmt::Debug for JoinHandle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("JoinHandle").field(self.thread()).finish()
    }
}

/// What the handles have in common.
pub(crate) struct RawHandle<T> {
    thread: Thread,
    result: PhantomData<fn() -> T>,
}

// SAFETY: the result is moved to whoever holds the handle, and `T: Send` was demanded where the thread
// was spawned.
unsafe impl<T> Send for RawHandle<T> {}
// SAFETY: `&RawHandle` gives access to no `T`.
unsafe impl<T> Sync for RawHandle<T> {}

impl<T> RawHandle<T> {
    pub(crate) fn new(thread: ThreadRef) -> RawHandle<T> {
        RawHandle {
            thread: Thread::from_virtual(thread),
            result: PhantomData,
        }
    }

    pub(crate) fn thread(&self) -> &Thread {
        &self.thread
    }

    /// The virtual thread itself.
    pub(crate) fn core(&self) -> &ThreadRef {
        match self.thread.as_virtual() {
            Some(thread) => thread,
            None => unreachable!("a join handle of a platform thread"),
        }
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.core().join.is_done()
    }

    pub(crate) fn join(self) -> super::Result<T> {
        let core = self.core();
        if !core.join.is_done() && vthread::current().is_none() {
            crate::sched::lend(core.as_ptr());
        }
        if !core.join.is_done() {
            let wait = Wait::new();
            if core.join.register(NonNull::from(&wait).cast()) {
                wait.block();
            }
        }
        // SAFETY: it has ended, and this is its only handle.
        match unsafe { Cell::<T>::take_result(core) } {
            Some(result) => result,
            None => resume_unwind(Box::new("a virtual thread ended without a result")),
        }
    }
}

impl<T> Drop for RawHandle<T> {
    fn drop(&mut self) {
        detached::detach(self.core());
    }
}
