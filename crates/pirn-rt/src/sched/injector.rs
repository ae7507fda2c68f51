//! The injector: the queue for threads made runnable outside of any processor, and for the overflow
//! of the processors' queues.
//!
//! Beside the queue is a stack without a lock, for threads that signal handlers make runnable: a
//! handler may have interrupted code that holds the queue's lock, or changes a processor's queue.
//!
//! `crates/pirn-model` checks this file: `injector_model.rs`.

use super::ready_queue::{Batch, ReadyQueue};
use crate::primitives::{
    AtomicBool, AtomicPtr,
    Ordering::{Acquire, Relaxed, Release},
};
use crate::vthread::{Core, Ready};
use core::ptr::{self, NonNull};

/// See the module's documentation.
pub struct Injector {
    queue: ReadyQueue,
    /// Whether a thread has come from outside of the processors, and not by overflow, since the
    /// last [`take_from_outside`](Self::take_from_outside).
    from_outside: AtomicBool,
    /// The threads that handlers have made runnable, the newest first, linked by their `next`.
    posted: AtomicPtr<Core>,
}

impl Injector {
    /// Returns an empty injector.
    pub(crate) fn new() -> Injector {
        Injector {
            queue: ReadyQueue::new(),
            from_outside: AtomicBool::new(false),
            posted: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Puts a thread aside until the next [`take_posted`](Self::take_posted). Async-signal-safe.
    pub(crate) fn post(&self, thread: Ready) {
        let thread = thread.into_raw().as_ptr();
        let push = |newest: *mut Core| {
            // SAFETY: we own the right to run it, so its link is ours.
            unsafe { (*thread).next.set(newest) };
            Some(thread)
        };
        // Release: pairs with the Acquire in `take_posted`, which follows the link.
        let _ = self.posted.fetch_update(Release, Relaxed, push);
    }

    /// Passes all threads that were put aside to `run`, in the order of their posts.
    #[inline]
    pub(crate) fn take_posted(&self, run: impl FnMut(Ready)) {
        // Relaxed: the handler that posts a thread kicks a carrier afterwards.
        if !self.posted.load(Relaxed).is_null() {
            self.take_all_posted(run);
        }
    }

    #[cold]
    fn take_all_posted(&self, mut run: impl FnMut(Ready)) {
        let mut newest: *const Core = self.posted.swap(ptr::null_mut(), Acquire);
        let mut oldest: *const Core = ptr::null();
        // SAFETY: the swap has given us the right to run the threads of the stack.
        while let Some(thread) = unsafe { newest.as_ref() } {
            let next = thread.next.replace(oldest);
            (oldest, newest) = (newest, next);
        }
        while let Some(thread) = NonNull::new(oldest.cast_mut()) {
            // SAFETY: the right to run it, from `into_raw` in `post`.
            run(unsafe {
                oldest = thread.as_ref().next.get();
                Ready::new(thread)
            });
        }
    }

    /// Returns the number of threads that wait here.
    #[inline]
    pub fn len(&self) -> usize {
        self.queue.len()
    }

    /// Appends one thread.
    pub(crate) fn push(&self, thread: Ready) {
        self.queue.push(thread);
    }

    /// Appends several threads in order.
    pub(crate) fn push_batch(&self, batch: Batch) {
        self.queue.push_batch(batch);
    }

    /// Takes up to `max` threads from the front: returns the first, and passes the others to
    /// `rest`.
    pub fn pop(&self, max: usize, rest: impl FnMut(Ready)) -> Option<Ready> {
        self.queue.pop(max, rest)
    }

    /// Takes `thread` if it is the first in line. The pointer is only compared, never followed.
    pub(crate) fn take_first(&self, thread: *const Core) -> Option<Ready> {
        self.queue.take_first(thread)
    }

    /// Appends one thread that was made runnable outside of the processors, and notes that.
    pub(crate) fn push_from_outside(&self, thread: Ready) {
        self.push(thread);
        self.from_outside.store(true, Relaxed); // Relaxed: see `has_from_outside`.
    }

    /// Returns whether a thread has come from outside since the last
    /// [`take_from_outside`](Self::take_from_outside), and some thread is still here.
    pub(crate) fn has_from_outside(&self) -> bool {
        // Relaxed: if it is seen late, a carrier takes the thread when its turn in the queue comes.
        self.from_outside.load(Relaxed) && self.len() > 0
    }

    /// Takes the first thread, if there is one [from outside](Self::has_from_outside).
    pub(crate) fn take_from_outside(&self) -> Option<Ready> {
        if !self.has_from_outside() {
            return None;
        }
        self.from_outside.store(false, Relaxed); // Relaxed: see `has_from_outside`.
        self.pop(1, |_| ())
    }
}
