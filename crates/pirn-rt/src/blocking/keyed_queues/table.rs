//! A hash table from keys to the queues of their waiters: open addressing, linear probing.
//!
//! The keys are in the table itself, so that neither a search nor a growing table touches a waiter.
//! A place whose queue is empty is free. When a queue becomes empty, the places behind it close up,
//! so a search ends at the first free place.

use crate::blocking::list::{Linked, List};
use crate::own_vec::OwnVec;
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};

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

/// A place of the table.
struct Place<T> {
    key: usize,
    queue: List<T>,
}

/// Bytes of all tables, which never shrink.
static BYTES: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes of all tables.
pub(super) fn bytes() -> usize {
    BYTES.load(Relaxed) // Relaxed: as above.
}

/// See the module's documentation.
pub(super) struct Table<T> {
    /// None, or a power of two; a quarter of them are free.
    places: OwnVec<Place<T>>,
    /// The number of places that are not free.
    used: u32,
}

impl<T: Linked> Table<T> {
    /// Returns a table without places.
    pub(super) const fn new() -> Table<T> {
        Table {
            places: OwnVec::new(),
            used: 0,
        }
    }

    /// Returns the number of places.
    pub(super) fn capacity(&self) -> usize {
        self.places.len()
    }

    /// Returns the place of `key`, if the key has waiters in the table.
    #[inline]
    pub(super) fn place_of(&self, key: usize) -> Option<usize> {
        if self.places.is_empty() {
            return None;
        }
        let place = self.search(key);
        (!self.places[place].queue.is_empty()).then_some(place)
    }

    /// Returns the queue at a place.
    #[inline]
    pub(super) fn queue_at(&mut self, place: usize) -> &mut List<T> {
        &mut self.places[place].queue
    }

    /// Returns the queue of `key`. If it has none it gets one, for which there must be room, and to
    /// which the caller adds a waiter.
    #[inline]
    pub(super) fn queue_for(&mut self, key: usize) -> &mut List<T> {
        let place = self.search(key);
        let place = &mut self.places[place];
        self.used += u32::from(place.queue.is_empty());
        place.key = key;
        &mut place.queue
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
        let Ok(mut places) = OwnVec::with_capacity(capacity) else {
            return false;
        };
        let free = || Place {
            key: 0,
            queue: List::new(),
        };
        (0..capacity).for_each(|_| places.push(free()));
        // Relaxed: a number for people to read.
        BYTES.fetch_add(places.bytes() - self.places.bytes(), Relaxed);
        let mut old = core::mem::replace(&mut self.places, places);
        for place in old.iter_mut().filter(|place| !place.queue.is_empty()) {
            let new = self.search(place.key);
            core::mem::swap(&mut self.places[new], place);
        }
        true
    }

    /// Frees a place that has been in use, if its queue is empty now: places behind it close up.
    /// Returns whether it did.
    pub(super) fn tidy(&mut self, place: usize) -> bool {
        if !self.places[place].queue.is_empty() {
            return false;
        }
        self.used -= 1;
        let mask = self.capacity() - 1;
        let (mut free, mut next) = (place, place);
        loop {
            next = (next + 1) & mask;
            if self.places[next].queue.is_empty() {
                return true;
            }
            // A search for this key begins at `begin`. It must not meet the free place.
            let begin = Hash::of(self.places[next].key).bits_for_places() & mask;
            if next.wrapping_sub(begin) & mask >= next.wrapping_sub(free) & mask {
                self.places.swap(free, next);
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
            let found = &self.places[place];
            if found.key == key || found.queue.is_empty() {
                return place;
            }
            place = (place + 1) & mask;
        }
    }
}
