//! Lists of waiting threads, in order of arrival, linked through the waiters' own stacks.

use core::cell::Cell;
use core::ptr;

/// A waiter's place in a list.
pub(crate) struct Links<T> {
    linked: Cell<bool>,
    previous: Cell<*mut T>,
    next: Cell<*mut T>,
}

impl<T> Links<T> {
    /// In no list.
    pub(crate) const fn new() -> Links<T> {
        Links {
            linked: Cell::new(false),
            previous: Cell::new(ptr::null_mut()),
            next: Cell::new(ptr::null_mut()),
        }
    }

    /// The one behind; null for the last.
    pub(crate) fn next(&self) -> *mut T {
        #[cfg(test)]
        STEPS.set(STEPS.get() + 1);
        self.next.get()
    }
}

#[cfg(test)]
std::thread_local! {
    /// Counts the calls of [`Links::next`]: what walks along lists cost.
    pub(crate) static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// What can be in a list, in one at a time. It must stay where it is until it has left.
pub(crate) trait Linked: Sized {
    /// Its place.
    fn links(&self) -> &Links<Self>;
}

/// A list; it is inside the lock that guards it and the links of all that is in it.
pub(crate) struct List<T> {
    first: *mut T,
    last: *mut T,
}

// SAFETY: the pointers are followed under the list's lock only.
unsafe impl<T> Send for List<T> {}

impl<T: Linked> List<T> {
    /// Nobody waits.
    pub(crate) const fn new() -> List<T> {
        List {
            first: ptr::null_mut(),
            last: ptr::null_mut(),
        }
    }

    /// The first; null if there is none.
    pub(crate) fn first(&self) -> *mut T {
        self.first
    }

    /// Adds a waiter at the end.
    pub(crate) fn append(&mut self, waiter: &T) {
        let pointer = ptr::from_ref(waiter).cast_mut();
        let links = waiter.links();
        links.next.set(ptr::null_mut());
        links.previous.set(self.last);
        links.linked.set(true);
        // SAFETY: what is in the list stays valid until it leaves it, under the list's lock.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.links().next.set(pointer),
            None => self.first = pointer,
        }
        self.last = pointer;
    }

    /// Takes a waiter out, if it is in the list.
    pub(crate) fn remove(&mut self, waiter: &T) {
        let links = waiter.links();
        if !links.linked.replace(false) {
            return;
        }
        let (previous, next) = (links.previous.get(), links.next.get());
        // SAFETY: as in `append`.
        unsafe {
            match previous.as_ref() {
                Some(previous) => previous.links().next.set(next),
                None => self.first = next,
            }
            match next.as_ref() {
                Some(next) => next.links().previous.set(previous),
                None => self.last = previous,
            }
        }
    }
}
