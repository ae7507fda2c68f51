//! The threads that wait in one bucket of the parking lot, a queue per key.
//!
//! ```text
//!   few                     many: a table with a place per key
//!   few ─► w ─► w           ┌─────┬────────────┬─────┬────────────┬───────┐
//!   (of any key)            │     │ key, queue │     │ key, queue │  ...  │
//!                           └─────┴────────┼───┴─────┴────────┼───┴───────┘
//!                                          w ─► w             w
//! ```
//!
//! A waiter is on the stack of the waiting thread, so each one visited is a cache miss. If a
//! million threads wait for as many words, a bucket has hundreds of them. So a crowded bucket has a
//! [table](table) of its own: finding a key, adding one and enlarging the table touch no waiter of
//! another key, nor any waiter of the same key but its neighbours in the queue.
//!
//! Each key is in one place. It has a place in the table only if `few` is empty, and a waiter joins
//! `few` only if its key has no place in the table.

mod table;

use super::list::{Linked, List};
use core::ops::ControlFlow;
use core::ptr::NonNull;
use table::{Hash, Table};

/// The maximum number of waiters in one list for all keys, unless there is no memory for a table.
const FEW: u32 = 2;

/// Returns the number of the bucket that `key` belongs to; `BUCKETS` is a power of two.
#[inline]
pub(super) fn bucket_of<const BUCKETS: usize>(key: usize) -> usize {
    Hash::of(key).bucket::<BUCKETS>()
}

/// Returns the bytes of all tables of all buckets.
pub(super) fn bytes() -> usize {
    table::bytes()
}

/// A waiter for a key.
pub(crate) trait Keyed: Linked {
    /// Returns the key. It changes only while the waiter is in no list.
    fn key(&self) -> usize;
}

/// The answer of a visitor about a waiter.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Visit {
    /// It stays in its queue.
    Leave,
    /// It is taken out.
    Take,
    /// It is taken out, and no other is visited: even a look at the next one is a cache miss.
    TakeLast,
}

/// See the module's documentation.
pub(crate) struct KeyedQueues<T> {
    few: List<T>,
    /// The length of `few`.
    few_len: u32,
    table: Table<T>,
}

impl<T: Keyed> KeyedQueues<T> {
    /// Returns queues without waiters.
    pub(crate) const fn new() -> KeyedQueues<T> {
        KeyedQueues {
            few: List::new(),
            few_len: 0,
            table: Table::new(),
        }
    }

    /// Adds a waiter at the end of the queue of its key.
    ///
    /// # Safety
    /// As for [`List::append`].
    #[inline]
    pub(crate) unsafe fn append(&mut self, waiter: &T) {
        let key = waiter.key();
        let queue = if self.table.place_of(key).is_some() || self.table_has_room() {
            self.table.queue_for(key)
        } else {
            self.few_len += 1;
            &mut self.few
        };
        // SAFETY: the caller's contract.
        unsafe { queue.append(waiter) };
    }

    /// Removes a waiter, if it is in its queue.
    ///
    /// # Safety
    /// It is in no other bucket's queue.
    pub(crate) unsafe fn remove(&mut self, waiter: &T) {
        let key = waiter.key();
        match self.table.place_of(key) {
            // SAFETY: the caller's contract; each key is in one place.
            Some(place) => unsafe {
                self.table.queue_at(place).remove(waiter);
                self.table.tidy(place);
            },
            // SAFETY: as above.
            None => self.few_len -= u32::from(unsafe { self.few.remove(waiter) }),
        }
    }

    /// Visits the waiters of `key` in order of arrival, and takes those out for which `visit` says
    /// so.
    #[inline]
    pub(crate) fn walk(&mut self, key: usize, mut visit: impl FnMut(&T) -> Visit) {
        if let Some(place) = self.table.place_of(key) {
            let _ = take_from(self.table.queue_at(place), visit);
            self.table.tidy(place);
        } else {
            let _ = self.walk_few(|waiter| match waiter.key() == key {
                true => visit(waiter),
                false => Visit::Leave,
            });
        }
    }

    /// Takes out the first `count` waiters of `key`, in order of arrival.
    pub(crate) fn take(&mut self, key: usize, count: usize) -> List<T> {
        let mut taken = List::new();
        for _ in 0..count {
            let mut first = None;
            self.walk(key, |waiter| {
                first = Some(NonNull::from(waiter));
                Visit::TakeLast
            });
            let Some(first) = first else { break };
            // SAFETY: it was in our queue, so it is valid, and it is in no list now.
            unsafe { taken.append(first.as_ref()) };
        }
        taken
    }

    /// Does the same as [`walk`](Self::walk) with the waiters of all keys, one key after the other.
    /// May visit a waiter twice.
    pub(crate) fn walk_all(&mut self, mut visit: impl FnMut(&T) -> Visit) {
        let mut flow = self.walk_few(&mut visit);
        let mut place = 0;
        while flow.is_continue() && place < self.table.capacity() {
            let queue = self.table.queue_at(place);
            if queue.is_empty() {
                place += 1;
                continue;
            }
            flow = take_from(queue, &mut visit);
            // If this place is free now, another queue may have moved to it.
            place += usize::from(!self.table.tidy(place));
        }
    }

    #[inline]
    fn walk_few(&mut self, mut visit: impl FnMut(&T) -> Visit) -> ControlFlow<()> {
        let few_len = &mut self.few_len;
        take_from(&mut self.few, |waiter| {
            let answer = visit(waiter);
            *few_len -= u32::from(answer != Visit::Leave);
            answer
        })
    }

    /// Returns whether a key that is in no place goes to the table, which has room for it then.
    #[inline]
    fn table_has_room(&mut self) -> bool {
        if self.table.capacity() == 0 && self.few_len < FEW {
            return false;
        }
        self.table.reserve(self.few_len as usize + 1) && {
            self.move_few();
            true
        }
    }

    /// Moves the waiters of `few` to the table, which has room for them.
    #[inline]
    fn move_few(&mut self) {
        while let Some(waiter) = self.few.take_first() {
            let queue = self.table.queue_for(waiter.key());
            // SAFETY: the waiter stays in place, as the contract of the first `append` demands.
            unsafe { queue.append(waiter) };
        }
        self.few_len = 0;
    }
}

/// Visits the waiters of a list. Breaks if `visit` wants no more.
#[inline]
fn take_from<T: Linked>(list: &mut List<T>, mut visit: impl FnMut(&T) -> Visit) -> ControlFlow<()> {
    list.walk(|list, waiter| {
        let answer = visit(waiter);
        if answer != Visit::Leave {
            // SAFETY: the walk found it in this list.
            unsafe { list.remove(waiter) };
        }
        match answer {
            Visit::TakeLast => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    })
}

#[cfg(test)]
mod tests;
