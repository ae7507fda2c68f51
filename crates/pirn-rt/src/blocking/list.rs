//! Lists of waiting threads, in order of arrival, linked through the waiters' own stacks.

use core::cell::Cell;
use core::marker::PhantomData;
use core::ops::ControlFlow;
use core::ptr;

/// A waiter's place in a list.
pub struct Links<T> {
    linked: Cell<bool>,
    previous: Cell<*const T>,
    next: Cell<*const T>,
}

impl<T> Links<T> {
    /// Makes the links of something that is in no list.
    pub const fn new() -> Links<T> {
        Links {
            linked: Cell::new(false),
            previous: Cell::new(ptr::null()),
            next: Cell::new(ptr::null()),
        }
    }

    /// Returns whether it is in a list.
    pub(crate) fn is_linked(&self) -> bool {
        self.linked.get()
    }

    /// Returns the next waiter; null after the last.
    fn next(&self) -> *const T {
        #[cfg(test)]
        STEPS.set(STEPS.get() + 1);
        self.next.get()
    }
}

#[cfg(test)]
std::thread_local! {
    /// The number of steps that walks along lists have taken.
    pub(crate) static STEPS: Cell<usize> = const { Cell::new(0) };
}

/// An item of a list, in at most one list at a time.
pub trait Linked: Sized {
    /// Returns its links.
    fn links(&self) -> &Links<Self>;
}

/// A list. The lock that contains it guards it and the links of its items.
pub struct List<T> {
    first: *const T,
    last: *const T,
}

// SAFETY: the pointers are followed under the list's lock only.
unsafe impl<T> Send for List<T> {}

impl<T: Linked> List<T> {
    /// Makes an empty list.
    pub const fn new() -> List<T> {
        List {
            first: ptr::null(),
            last: ptr::null(),
        }
    }

    /// Returns whether the list is empty.
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_null()
    }

    /// Adds a waiter at the end.
    ///
    /// # Safety
    /// The waiter is in no list. It stays in its place until it has left this one, under the list's
    /// lock.
    pub unsafe fn append(&mut self, waiter: &T) {
        let links = waiter.links();
        links.next.set(ptr::null());
        links.previous.set(self.last);
        links.linked.set(true);
        // SAFETY: items in the list are valid, by this function's contract.
        match unsafe { self.last.as_ref() } {
            Some(last) => last.links().next.set(waiter),
            None => self.first = waiter,
        }
        self.last = waiter;
    }

    /// Removes a waiter, if it is in the list. Returns whether it was.
    ///
    /// # Safety
    /// The waiter is in no other list.
    pub unsafe fn remove(&mut self, waiter: &T) -> bool {
        let links = waiter.links();
        if !links.linked.replace(false) {
            return false;
        }
        let (previous, next) = (links.previous.get(), links.next.get());
        // SAFETY: its neighbours are in the list, so they are valid, by the contract of `append`.
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
        true
    }

    /// Removes and returns the first waiter.
    pub fn take_first(&mut self) -> Option<&T> {
        // SAFETY: items in the list are valid, by the contract of `append`.
        let first = unsafe { self.first.as_ref() }?;
        // SAFETY: it is in this list.
        unsafe { self.remove(first) };
        Some(first)
    }

    /// Returns an iterator over all waiters, in order of arrival.
    pub fn iter(&self) -> Iter<'_, T> {
        Iter {
            next: self.first,
            list: PhantomData,
        }
    }

    /// Calls `visit` with each waiter, in order of arrival, until it breaks. `visit` may remove the
    /// waiter that it is called with, and no other.
    #[inline]
    pub(crate) fn walk<B>(
        &mut self,
        mut visit: impl FnMut(&mut List<T>, &T) -> ControlFlow<B>,
    ) -> ControlFlow<B> {
        let mut next = self.first;
        // SAFETY: items in the list are valid, by the contract of `append`.
        while let Some(waiter) = unsafe { next.as_ref() } {
            next = waiter.links().next();
            visit(self, waiter)?;
        }
        ControlFlow::Continue(())
    }
}

/// See [`List::iter`].
pub struct Iter<'a, T> {
    next: *const T,
    list: PhantomData<&'a List<T>>,
}

impl<'a, T: Linked> Iterator for Iter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        // SAFETY: no item leaves while the list is borrowed, and items in it are valid, by the
        // contract of `append`.
        let waiter = unsafe { self.next.as_ref() }?;
        self.next = waiter.links().next();
        Some(waiter)
    }
}

#[cfg(test)]
#[path = "list/tests.rs"] // `pirn-model` includes this file from elsewhere.
mod tests;
