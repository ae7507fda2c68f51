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
//! [table](Table) of its own: finding a key, adding one and enlarging the table touch no waiter of
//! another key, nor any waiter of the same key but its neighbours in the queue.
//!
//! Each key is in one place. It has a place in the table only if `few` is empty, and a waiter joins
//! `few` only if its key has no place in the table.

use crate::blocking::list::{Linked, List};
use crate::own_vec::OwnVec;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// The maximum number of waiters in one list for all keys, unless there is no memory for a table.
const FEW: u32 = 2;

/// Returns the number of the bucket that `key` belongs to; `BUCKETS` is a power of two.
#[inline]
pub(super) fn bucket_of<const BUCKETS: usize>(key: usize) -> usize {
    Hash::of(key).bucket::<BUCKETS>()
}

/// A waiter for a key.
pub(crate) trait Keyed: Linked {
    /// Returns the key. It changes only while the waiter is in no list.
    fn key(&self) -> usize;
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
    /// The waiter is in no other bucket's queue.
    pub(crate) unsafe fn remove(&mut self, waiter: &T) {
        let key = waiter.key();
        match self.table.place_of(key) {
            // SAFETY: the caller's contract; each key is in one place.
            Some(place) => unsafe {
                self.table.queue_at(place).remove(waiter);
                self.table.tidy(place);
            },
            // SAFETY: the caller's contract; each key is in one place.
            None => self.few_len -= u32::from(unsafe { self.few.remove(waiter) }),
        }
    }

    /// Takes the waiters of `key` that `wants` accepts out of the queue, in order of arrival, and
    /// calls `taken` with each, until that breaks: even a look at the next is a cache miss.
    ///
    /// `taken` may claim the waiter. A platform thread goes on as soon as it is claimed, and its
    /// stack frame is gone: so no queue may refer to the waiter by then.
    #[inline]
    pub(crate) fn take_while(
        &mut self,
        key: usize,
        wants: impl Fn(&T) -> bool,
        taken: impl FnMut(&T) -> ControlFlow<()>,
    ) {
        if let Some(place) = self.table.place_of(key) {
            let _ = take_from(self.table.queue_at(place), wants, taken);
            self.table.tidy(place);
        } else {
            let _ = self.take_few(|waiter| waiter.key() == key && wants(waiter), taken);
        }
    }

    /// Takes out the first `count` waiters of `key`, in order of arrival.
    pub(crate) fn take(&mut self, key: usize, count: usize) -> List<T> {
        let mut list = List::new();
        let mut left = count;
        if left > 0 {
            self.take_while(
                key,
                |_| true,
                |waiter| {
                    // SAFETY: it was in our queue, so it is valid, and it is in no list now.
                    unsafe { list.append(waiter) };
                    left -= 1;
                    break_if(left == 0)
                },
            );
        }
        list
    }

    /// Does what [`take_while`](Self::take_while) does for the waiters of all keys, one key after
    /// the other.
    pub(crate) fn take_all_while(&mut self, mut taken: impl FnMut(&T) -> ControlFlow<()>) {
        let mut flow = self.take_few(|_| true, &mut taken);
        let mut place = 0;
        while flow.is_continue() && place < self.table.capacity() {
            let queue = self.table.queue_at(place);
            if queue.is_empty() {
                place += 1;
                continue;
            }
            flow = take_from(queue, |_| true, &mut taken);
            // If this place is free now, another queue may have moved to it.
            place += usize::from(!self.table.tidy(place));
        }
    }

    #[inline]
    fn take_few(
        &mut self,
        wants: impl Fn(&T) -> bool,
        mut taken: impl FnMut(&T) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let few_len = &mut self.few_len;
        take_from(&mut self.few, wants, |waiter| {
            *few_len -= 1;
            taken(waiter)
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

/// Takes the waiters that `wants` accepts out of a list, and calls `taken` with each, until that
/// breaks.
#[inline]
fn take_from<T: Linked>(
    list: &mut List<T>,
    wants: impl Fn(&T) -> bool,
    mut taken: impl FnMut(&T) -> ControlFlow<()>,
) -> ControlFlow<()> {
    list.walk(|list, waiter| {
        if !wants(waiter) {
            return ControlFlow::Continue(());
        }
        // SAFETY: the walk found it in this list.
        unsafe { list.remove(waiter) };
        taken(waiter)
    })
}

/// Returns `Break` if this is the last.
#[inline]
pub(super) fn break_if(is_last: bool) -> ControlFlow<()> {
    match is_last {
        true => ControlFlow::Break(()),
        false => ControlFlow::Continue(()),
    }
}

/// The places of the smallest table.
const LEAST: usize = 8;
/// The maximum number of places: with 4,096 buckets, room for 12 million keys.
const MOST: usize = 4096;

/// A key's hash, by Fibonacci hashing: words of a structure are neighbours, and must not share a
/// bucket. Separate bits choose the bucket and the place: if they overlapped, the keys of a bucket
/// would crowd in few of its places.
///
/// ```text
///   63 .. 64 - b       bucket, of 2^b
///   32 + p - 1 .. 32   place in the bucket's table, of 2^p
/// ```
#[derive(Clone, Copy)]
pub(super) struct Hash(u64);

impl Hash {
    #[inline]
    pub(super) fn of(key: usize) -> Hash {
        Hash((key as u64 >> 2).wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    /// Returns the number of the bucket; `BUCKETS` is a power of two.
    #[inline]
    pub(super) fn bucket<const BUCKETS: usize>(self) -> usize {
        const {
            assert!(BUCKETS.is_power_of_two() && MOST.is_power_of_two());
            assert!(BUCKETS.trailing_zeros() + MOST.trailing_zeros() <= 32);
        }
        (self.0 >> (64 - BUCKETS.trailing_zeros())) as usize
    }

    #[inline]
    fn bits_for_places(self) -> usize {
        (self.0 >> 32) as usize
    }
}

/// An entry of the table.
struct Entry<T> {
    key: usize,
    queue: List<T>,
}

/// Bytes of all tables, which never shrink.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes of all tables.
pub(super) fn bytes() -> usize {
    BYTES.load(Relaxed) // Relaxed: statistics only.
}

/// See the module's documentation.
pub(super) struct Table<T> {
    /// Their number is 0 or a power of two; at least a quarter of them are free.
    entries: OwnVec<Entry<T>>,
    /// The number of places that are not free.
    used: u32,
}

impl<T: Linked> Table<T> {
    /// Returns a table without places.
    pub(super) const fn new() -> Table<T> {
        Table {
            entries: OwnVec::new(),
            used: 0,
        }
    }

    /// Returns the number of places.
    pub(super) fn capacity(&self) -> usize {
        self.entries.len()
    }

    /// Returns the place of `key`, if the key has waiters in the table.
    #[inline]
    pub(super) fn place_of(&self, key: usize) -> Option<usize> {
        if self.entries.is_empty() {
            return None;
        }
        let place = self.search(key);
        (!self.entries[place].queue.is_empty()).then_some(place)
    }

    /// Returns the queue at a place.
    #[inline]
    pub(super) fn queue_at(&mut self, place: usize) -> &mut List<T> {
        &mut self.entries[place].queue
    }

    /// Returns the queue of `key`. If it has none it gets one, for which there must be room, and to
    /// which the caller adds a waiter.
    #[inline]
    pub(super) fn queue_for(&mut self, key: usize) -> &mut List<T> {
        let place = self.search(key);
        let entry = &mut self.entries[place];
        self.used += u32::from(entry.queue.is_empty());
        entry.key = key;
        &mut entry.queue
    }

    /// Makes room for `keys` more keys. Returns false if there is no memory for that.
    #[inline]
    pub(super) fn reserve(&mut self, keys: usize) -> bool {
        let used = self.used as usize + keys;
        used <= self.capacity() / 4 * 3 || self.grow(used)
    }

    #[cold]
    fn grow(&mut self, used: usize) -> bool {
        let capacity = (used * 4).div_ceil(3).next_power_of_two().max(LEAST);
        if capacity > MOST {
            return false;
        }
        let Ok(mut entries) = OwnVec::with_capacity(capacity) else {
            return false;
        };
        let free = || Entry {
            key: 0,
            queue: List::new(),
        };
        (0..capacity).for_each(|_| entries.push(free()));
        // Relaxed: statistics only.
        BYTES.fetch_add(entries.bytes() - self.entries.bytes(), Relaxed);
        let mut old = core::mem::replace(&mut self.entries, entries);
        for entry in old.iter_mut().filter(|entry| !entry.queue.is_empty()) {
            let new = self.search(entry.key);
            core::mem::swap(&mut self.entries[new], entry);
        }
        true
    }

    /// Frees a place that has been in use, if its queue is empty now: places behind it close up.
    /// Returns whether it did.
    pub(super) fn tidy(&mut self, place: usize) -> bool {
        if !self.entries[place].queue.is_empty() {
            return false;
        }
        self.used -= 1;
        let mask = self.capacity() - 1;
        let (mut free, mut next) = (place, place);
        loop {
            next = (next + 1) & mask;
            if self.entries[next].queue.is_empty() {
                return true;
            }
            // A search for this key begins at `begin`. It must not meet the free place.
            let begin = Hash::of(self.entries[next].key).bits_for_places() & mask;
            if next.wrapping_sub(begin) & mask >= next.wrapping_sub(free) & mask {
                self.entries.swap(free, next);
                free = next;
            }
        }
    }

    /// Returns the place of `key`, or else the free one that would be its. There must be places.
    #[inline]
    fn search(&self, key: usize) -> usize {
        let mask = self.capacity() - 1;
        let mut place = Hash::of(key).bits_for_places() & mask;
        // Ends, because some places are free.
        loop {
            let found = &self.entries[place];
            if found.key == key || found.queue.is_empty() {
                return place;
            }
            place = (place + 1) & mask;
        }
    }
}

#[cfg(test)]
mod tests;
