//! The injector: the queue for threads made runnable outside of any processor, and for the overflow
//! of the processors' queues. First in, first out. It links the threads themselves, so it holds any
//! number of them without allocating.
//!
//! Beside the queue is a stack without a lock, for threads that signal handlers make runnable: a
//! handler may have interrupted code that holds the queue's lock, or changes a processor's queue.

use crate::lock::Lock;
use crate::vthread::{Core, Ready};
use core::ptr::{self, NonNull};
use core::sync::atomic::{
    AtomicBool, AtomicPtr, AtomicUsize,
    Ordering::{Acquire, Relaxed, Release},
};

/// See the module's documentation.
#[repr(align(64))]
pub(crate) struct Injector {
    /// Length, readable without the lock.
    len: AtomicUsize,
    /// Whether a thread has come from outside of the processors, and not by overflow, that was
    /// not looked at yet.
    from_outside: AtomicBool,
    list: Lock<ReadyList>,
    /// The threads that handlers have made runnable, the newest first, linked by their `next`.
    posted: AtomicPtr<Core>,
}

/// Threads linked by their `next`. The list owns the right to run each of them.
struct ReadyList {
    head: *const Core,
    tail: *const Core,
}

// SAFETY: holds threads that it owns the right to run.
unsafe impl Send for ReadyList {}

/// Threads on their way into the injector.
pub(crate) struct Batch {
    list: ReadyList,
    len: usize,
}

impl Batch {
    pub(crate) fn new() -> Batch {
        Batch {
            list: ReadyList::new(),
            len: 0,
        }
    }

    /// Appends a thread.
    pub(crate) fn push(&mut self, thread: Ready) {
        let thread = thread.into_raw().as_ptr();
        // SAFETY: we own the right to run it, so its link is ours.
        unsafe { (*thread).next.set(ptr::null()) };
        self.list.append(&ReadyList {
            head: thread,
            tail: thread,
        });
        self.len += 1;
    }
}

impl ReadyList {
    const fn new() -> ReadyList {
        ReadyList {
            head: ptr::null(),
            tail: ptr::null(),
        }
    }

    /// Appends a list that is not empty.
    fn append(&mut self, other: &ReadyList) {
        // SAFETY: the list owns the right to run its threads, so their links are its own.
        match unsafe { self.tail.as_ref() } {
            Some(tail) => tail.next.set(other.head),
            None => self.head = other.head,
        }
        self.tail = other.tail;
    }

    /// Takes the first thread.
    fn pop(&mut self) -> Option<Ready> {
        let thread = NonNull::new(self.head.cast_mut())?;
        // SAFETY: as in `append`.
        self.head = unsafe { thread.as_ref() }.next.get();
        if self.head.is_null() {
            self.tail = ptr::null();
        }
        // SAFETY: from `into_raw` in `Batch::push`, and off the list now.
        Some(unsafe { Ready::new(thread) })
    }
}

impl Injector {
    /// Returns an empty injector.
    pub(crate) fn new() -> Injector {
        Injector {
            len: AtomicUsize::new(0),
            from_outside: AtomicBool::new(false),
            list: Lock::new(ReadyList::new()),
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
        // Relaxed: a look. Whoever posts a thread kicks a carrier afterwards.
        if !self.posted.load(Relaxed).is_null() {
            self.take_all_posted(run);
        }
    }

    #[cold]
    fn take_all_posted(&self, mut run: impl FnMut(Ready)) {
        let mut newest: *const Core = self.posted.swap(ptr::null_mut(), Acquire);
        let mut oldest: *const Core = ptr::null();
        // SAFETY: whoever takes the stack owns the right to run its threads.
        while let Some(thread) = unsafe { newest.as_ref() } {
            let next = thread.next.replace(oldest);
            (oldest, newest) = (newest, next);
        }
        while let Some(thread) = NonNull::new(oldest.cast_mut()) {
            // SAFETY: as above; from `into_raw` in `post`.
            run(unsafe {
                oldest = thread.as_ref().next.get();
                Ready::new(thread)
            });
        }
    }

    /// Returns the number of threads that wait here.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        self.len.load(Relaxed) // Relaxed: the protocol of `idle` has fences of its own.
    }

    /// Appends one thread that was made runnable outside of the processors, and notes that.
    pub(crate) fn push_from_outside(&self, thread: Ready) {
        self.push(thread);
        self.from_outside.store(true, Relaxed); // Relaxed: a hint.
    }

    /// Returns whether a thread has come from outside since the last
    /// [`take_from_outside`](Self::take_from_outside), and some thread is still here.
    pub(crate) fn has_from_outside(&self) -> bool {
        self.from_outside.load(Relaxed) && self.len() > 0 // Relaxed: a hint.
    }

    /// Takes the first thread, if there is one [from outside](Self::has_from_outside).
    pub(crate) fn take_from_outside(&self) -> Option<Ready> {
        if !self.has_from_outside() {
            return None;
        }
        self.from_outside.store(false, Relaxed); // Relaxed: a hint.
        self.pop(1, |_| ())
    }

    /// Appends one thread.
    pub(crate) fn push(&self, thread: Ready) {
        let mut batch = Batch::new();
        batch.push(thread);
        self.push_batch(batch);
    }

    /// Puts one thread before all others.
    pub(crate) fn push_first(&self, thread: Ready) {
        let mut batch = Batch::new();
        batch.push(thread);
        let mut list = self.list.lock();
        let others = core::mem::replace(&mut *list, batch.list);
        if !others.head.is_null() {
            list.append(&others);
        }
        self.len.fetch_add(1, Relaxed); // Relaxed: see `len`.
    }

    /// Appends several threads in order.
    pub(crate) fn push_batch(&self, batch: Batch) {
        if batch.len == 0 {
            return;
        }
        let mut list = self.list.lock();
        list.append(&batch.list);
        self.len.fetch_add(batch.len, Relaxed); // Relaxed: see `len`.
    }

    /// Takes up to `max` threads from the front: returns the first, and passes the others to
    /// `rest`.
    pub(crate) fn pop(&self, max: usize, mut rest: impl FnMut(Ready)) -> Option<Ready> {
        if self.len() == 0 {
            return None;
        }
        let mut list = self.list.lock();
        let first = list.pop()?;
        let mut taken = 1;
        while taken < max
            && let Some(thread) = list.pop()
        {
            taken += 1;
            rest(thread);
        }
        self.len.fetch_sub(taken, Relaxed); // Relaxed: see `len`.
        Some(first)
    }

    /// Takes `thread` if it is the first in line. The pointer is only compared, never followed.
    pub(crate) fn take_first(&self, thread: *const Core) -> Option<Ready> {
        if self.len() == 0 {
            return None;
        }
        let mut list = self.list.lock();
        if list.head != thread {
            return None;
        }
        let thread = list.pop()?;
        self.len.fetch_sub(1, Relaxed); // Relaxed: see `len`.
        Some(thread)
    }
}
