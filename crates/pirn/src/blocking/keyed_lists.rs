//! The threads that wait in one bucket of the parking lot, found by key.
//!
//! ```text
//!   few                     many: one list for some of the keys each
//!   single ─► w ─► w        split ─┬─► w ─► w
//!                                  ├─► w
//!                                  └─► w ─► w ─► w
//! ```
//!
//! A waiter is on the stack of the waiting thread, so each one visited is a cache miss. If a
//! million threads wait for as many words, a walk along all of a bucket's waiters would be hundreds
//! of misses. So a crowded bucket splits its list by key. Waiters of one key are always in one
//! list, in order of arrival.

use super::list::{Linked, List};
use crate::own_vec::OwnVec;

/// With more waiters per list than this, the list is split further.
const CROWD: usize = 2;
/// The maximum number of lists: more waiters than fill these probably wait for the same key.
const MOST_LISTS: usize = 1024;

/// A key's hash, by Fibonacci hashing: words of a structure are neighbours, and must not share a
/// bucket. Separate bits choose the bucket and the list: if they overlapped, the keys of a bucket
/// would crowd in few of its lists.
///
/// ```text
///   63 .. 64 - b       bucket, of 2^b
///   32 + l - 1 .. 32   list in the bucket, of 2^l
/// ```
#[derive(Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    pub(super) fn of(key: usize) -> Hash {
        Hash((key as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns the number of the bucket; `BUCKETS` is a power of two.
    pub(super) fn bucket<const BUCKETS: usize>(self) -> usize {
        const {
            assert!(BUCKETS.is_power_of_two() && MOST_LISTS.is_power_of_two());
            assert!(BUCKETS.trailing_zeros() + MOST_LISTS.trailing_zeros() <= 32);
        }
        (self.0 >> (64 - BUCKETS.trailing_zeros())) as usize
    }

    /// Returns the number of the list in its bucket; `lists` is a power of two.
    fn list(self, lists: usize) -> usize {
        (self.0 >> 32) as usize & (lists - 1)
    }
}

/// A waiter for a key.
pub(crate) trait Keyed: Linked {
    /// Returns the key. It changes only while the waiter is in no list, or between keys of one
    /// list.
    fn key(&self) -> usize;
}

/// See the module's documentation.
pub(crate) struct KeyedLists<T> {
    /// All waiters, while `split` is empty.
    single: List<T>,
    /// Empty, or a power of two.
    split: OwnVec<List<T>>,
}

impl<T: Keyed> KeyedLists<T> {
    /// Returns lists without waiters.
    pub(crate) const fn new() -> KeyedLists<T> {
        KeyedLists {
            single: List::new(),
            split: OwnVec::new(),
        }
    }

    /// Returns the list of the waiters of `key`, and perhaps of some other keys.
    pub(crate) fn list(&mut self, key: usize) -> &mut List<T> {
        let place = self.place(key);
        self.split.get_mut(place).unwrap_or(&mut self.single)
    }

    /// Returns whether the two keys share a list.
    pub(crate) fn share_list(&self, a: usize, b: usize) -> bool {
        self.place(a) == self.place(b)
    }

    /// Returns all lists.
    pub(crate) fn lists(&mut self) -> &mut [List<T>] {
        match self.split.is_empty() {
            true => core::slice::from_mut(&mut self.single),
            false => &mut self.split,
        }
    }

    /// Adds a waiter behind the others of its key. `count` is the number of waiters including it.
    ///
    /// # Safety
    /// As for [`List::append`].
    pub(crate) unsafe fn append(&mut self, waiter: &T, count: usize) {
        let lists = self.split.len().max(1);
        if count > CROWD * lists && lists < MOST_LISTS {
            self.split_into(4 * lists);
        }
        // SAFETY: the caller's contract.
        unsafe { self.list(waiter.key()).append(waiter) };
    }

    fn place(&self, key: usize) -> usize {
        Hash::of(key).list(self.split.len().max(1))
    }

    /// Spreads the waiters over `lists` lists. Leaves them as they are if there is no memory for
    /// that.
    #[cold]
    fn split_into(&mut self, lists: usize) {
        let Ok(mut split) = OwnVec::with_capacity(lists) else {
            return;
        };
        (0..lists).for_each(|_| split.push(List::new()));
        let mut old = core::mem::replace(self, KeyedLists::new());
        self.split = split;
        for list in old.lists() {
            while let Some(waiter) = list.take_first() {
                // SAFETY: the waiter stays in place, as the contract of the other list's `append`
                // demands.
                unsafe { self.list(waiter.key()).append(waiter) };
            }
        }
    }
}

#[cfg(test)]
mod tests;
