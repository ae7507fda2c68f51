//! The injector: the queue for threads made runnable outside of any processor, and for what
//! overflows from the processors' queues. First in, first out; linked through the threads
//! themselves, so that it holds any number without allocating.

use crate::lock::Lock;
use crate::vthread::Core;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering};

struct List {
    head: *const Core,
    tail: *const Core,
}

// SAFETY: holds threads that it owns the right to run.
unsafe impl Send for List {}

static LIST: Lock<List> = Lock::new(List {
    head: ptr::null(),
    tail: ptr::null(),
});
/// Length, readable without the lock.
static LEN: AtomicUsize = AtomicUsize::new(0);

/// Threads on their way into the injector.
pub(crate) struct Batch {
    list: List,
    len: usize,
}

impl Batch {
    pub(crate) fn new() -> Batch {
        Batch {
            list: List {
                head: ptr::null(),
                tail: ptr::null(),
            },
            len: 0,
        }
    }

    /// Appends a thread that the caller owns the right to run.
    pub(crate) fn push(&mut self, thread: NonNull<Core>) {
        self.list.append(thread.as_ptr(), thread.as_ptr());
        self.len += 1;
    }
}

impl List {
    fn append(&mut self, first: *const Core, last: *const Core) {
        // SAFETY: the list owns the right to run what is in it, so the links are its own.
        unsafe {
            (*last).next.set(ptr::null());
            match self.tail.as_ref() {
                Some(tail) => tail.next.set(first),
                None => self.head = first,
            }
        }
        self.tail = last;
    }
}

/// How many threads wait here.
#[inline]
pub(crate) fn len() -> usize {
    // SeqCst: part of the idle protocol; see `idle`.
    LEN.load(Ordering::SeqCst)
}

/// Appends one thread.
pub(crate) fn push(thread: NonNull<Core>) {
    let mut batch = Batch::new();
    batch.push(thread);
    push_batch(batch);
}

/// Appends several threads in order.
pub(crate) fn push_batch(batch: Batch) {
    if batch.len == 0 {
        return;
    }
    let mut list = LIST.lock();
    list.append(batch.list.head, batch.list.tail);
    // SeqCst: see `len`.
    LEN.fetch_add(batch.len, Ordering::SeqCst);
}

/// Takes up to `max` threads from the front: returns the first, and passes the others to `rest`.
pub(crate) fn pop(max: usize, mut rest: impl FnMut(NonNull<Core>)) -> Option<NonNull<Core>> {
    // Relaxed: a hint that saves the lock; the idle protocol asks `len`.
    if LEN.load(Ordering::Relaxed) == 0 {
        return None;
    }
    let mut list = LIST.lock();
    let mut first = None;
    let mut taken = 0;
    while taken < max.max(1)
        && let Some(thread) = NonNull::new(list.head.cast_mut())
    {
        // SAFETY: as in `append`.
        list.head = unsafe { thread.as_ref() }.next.get();
        if list.head.is_null() {
            list.tail = ptr::null();
        }
        taken += 1;
        match first {
            None => first = Some(thread),
            Some(_) => rest(thread),
        }
    }
    LEN.fetch_sub(taken, Ordering::SeqCst); // SeqCst: see `len`.
    first
}

/// Takes `thread` if it is the first in line.
pub(crate) fn take_first(thread: NonNull<Core>) -> bool {
    if len() == 0 {
        return false;
    }
    let mut list = LIST.lock();
    if list.head != thread.as_ptr().cast_const() {
        return false;
    }
    // SAFETY: as in `append`.
    list.head = unsafe { thread.as_ref() }.next.get();
    if list.head.is_null() {
        list.tail = ptr::null();
    }
    LEN.fetch_sub(1, Ordering::SeqCst); // SeqCst: see `len`.
    true
}
