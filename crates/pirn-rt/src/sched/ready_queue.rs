//! A queue of runnable threads: first in, first out. It links the threads themselves, so it holds
//! any number of them without allocating.

use crate::lock::Lock;
use crate::primitives::{AtomicUsize, Ordering::Relaxed};
use crate::vthread::{Core, Ready};
use core::ptr::{self, NonNull};

/// See the module's documentation.
#[repr(align(64))]
pub struct ReadyQueue {
    /// Length, readable without the lock.
    len: AtomicUsize,
    queued: Lock<ReadyList>,
}

/// Threads linked by their `next`. The list owns the right to run each of them.
struct ReadyList {
    head: *const Core,
    tail: *const Core,
}

// SAFETY: holds threads that it owns the right to run.
unsafe impl Send for ReadyList {}

/// Threads on their way into a queue.
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

impl ReadyQueue {
    /// Returns an empty queue.
    pub(crate) fn new() -> ReadyQueue {
        ReadyQueue {
            len: AtomicUsize::new(0),
            queued: Lock::new(ReadyList::new()),
        }
    }

    /// Returns the number of threads in it.
    #[inline]
    pub fn len(&self) -> usize {
        self.len.load(Relaxed) // Relaxed: the protocol of `idle` has fences of its own.
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
        let mut queued = self.queued.lock();
        let others = core::mem::replace(&mut *queued, batch.list);
        if !others.head.is_null() {
            queued.append(&others);
        }
        self.len.fetch_add(1, Relaxed); // Relaxed: see `len`.
    }

    /// Appends several threads in order.
    pub(crate) fn push_batch(&self, batch: Batch) {
        if batch.len == 0 {
            return;
        }
        let mut queued = self.queued.lock();
        queued.append(&batch.list);
        self.len.fetch_add(batch.len, Relaxed); // Relaxed: see `len`.
    }

    /// Takes up to `max` threads from the front: returns the first, and passes the others to
    /// `rest`.
    pub(crate) fn pop(&self, max: usize, mut rest: impl FnMut(Ready)) -> Option<Ready> {
        if self.len() == 0 {
            return None;
        }
        let mut queued = self.queued.lock();
        let first = queued.pop()?;
        let mut taken = 1;
        while taken < max
            && let Some(thread) = queued.pop()
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
        let mut queued = self.queued.lock();
        if queued.head != thread {
            return None;
        }
        let thread = queued.pop()?;
        self.len.fetch_sub(1, Relaxed); // Relaxed: see `len`.
        Some(thread)
    }
}
