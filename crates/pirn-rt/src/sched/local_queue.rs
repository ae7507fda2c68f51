//! The run queue of one processor: a ring with one owner and many stealers.
//!
//! ```text
//!             head                    tail
//!               │  oldest      newest  │
//!   ───┬────┬───▼┬────┬────┬────┬────┬─▼──┬────┬───    index i lives in ring[i mod size];
//!      │free│item│item│item│item│item│free│free│       tail - head (wrapping) ≤ size
//!   ───┴────┴────┴────┴────┴────┴────┴────┴────┴───
//!          consumers ──►               ──► owner
//! ```
//!
//! | operation   | who                  | step that makes it happen               |
//! |-------------|----------------------|-----------------------------------------|
//! | `push_back` | owner                | fill `slots[tail]`; store `tail + 1`    |
//! | `pop`       | owner                | CAS `head → head + 1`; read the slot    |
//! | `steal_into`| anyone with a queue  | read the slots; CAS `head → head + n`   |
//! | growing     | owner                | copy all items; store the new `size`    |
//!
//! Only the owner writes `tail` and slots. Every carrier takes from the old end, and only by moving
//! `head`. So a compare-and-swap decides who gets an item, and each queue is FIFO. The scheme is
//! Go's: `runq`.
//!
//! - *The owner may read a slot after the CAS*, because only the owner could overwrite it.
//! - *A stealer must read before its CAS*: once `head` has moved, the owner may reuse the slot.
//!   What it reads may therefore be stale or newer than `head`, but then `head` has moved and the
//!   CAS fails, and the stealer drops the items. Slots are atomic to make that race defined; they
//!   are always relaxed, as the indices carry the ordering.
//! - *Three edges carry it*: an item and its slot are published by `tail` (push → steal); a slot
//!   is freed by `head` (steal → push); and a taker that reads a `head` also sees a `tail` at least
//!   as new (any taker → steal), so that `tail - head` cannot be negative. All changes of `head`
//!   are read-modify-writes: reading one synchronises with all that came before it.
//!
//! A full ring is replaced by a larger one, and a large one that is nearly empty by the smallest.
//! The ring of size n is the part of `slots` from n to 2n, so rings of different sizes share no
//! slot, and nothing is allocated. A stealer may read a ring that has been replaced, even twice. If
//! its CAS succeeds, then `head` has stood still, so item i was in the queue all the time: in each
//! ring it was only ever at its own index, and no other item came there, for that one would have
//! been a whole ring later. A stealer that reads a `tail` also sees a size at least as new as when
//! the last item came (push → steal), and sees the items in the ring of the size that it reads (the
//! edge of `size`).
//!
//! Each slot also has a *note*, a word for the owner about the item: see
//! [`next_but`](LocalQueue::next_but). The note may be stale, is no part of the protocol, and is
//! not modelled.
//!
//! A stealer that sleeps between its load and its CAS while exactly 2³² items pass would be
//! fooled (ABA). At 20 ns per item that is 86 s asleep and then hitting one index in 2³².

use core::ptr::{self, NonNull};
use core::sync::atomic::AtomicUsize;

use crate::primitives::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// The most items that a stealer takes at once. It reads them before it knows that it gets them.
const MOST_STOLEN: u32 = 128;
/// The ratio of a ring's size to the size of the one before it.
const GROWTH: u32 = 4;

/// One place in a ring.
pub(crate) struct RingSlot<T> {
    item: AtomicPtr<T>,
    /// What was noted of the item.
    note: AtomicUsize,
}

impl<T> RingSlot<T> {
    /// Returns an unused slot. One of zeros is, too.
    #[allow(dead_code)] // the runtime's come as zeros
    pub(crate) fn new() -> Self {
        Self {
            item: AtomicPtr::new(ptr::null_mut()),
            note: AtomicUsize::new(0),
        }
    }

    /// Copies another slot.
    fn copy(&self, other: &RingSlot<T>) {
        // Relaxed all: the indices carry the ordering; the note may be stale.
        self.item.store(other.item.load(Relaxed), Relaxed);
        self.note.store(other.note.load(Relaxed), Relaxed);
    }
}

/// A FIFO queue of pointers with one owner and many stealers. It begins with room for `CAP`.
///
/// The queue only carries the pointers. It never follows them and drops nothing.
pub struct LocalQueue<T, const CAP: usize = 256> {
    /// Index of the oldest item. Moved by the taker of items, by compare-and-swap.
    head: AtomicU32,
    /// Index after the newest item. Written by the owner alone.
    tail: AtomicU32,
    /// The size of the ring in use, a power of two. Written by the owner alone.
    size: AtomicU32,
    /// The rings of all sizes, each where it begins at its own size.
    slots: Box<[RingSlot<T>]>,
}

impl<T, const CAP: usize> LocalQueue<T, CAP> {
    const SMALLEST: u32 = {
        assert!(CAP.is_power_of_two() && CAP <= 1 << 30);
        CAP as u32
    };

    /// Indices start just below the wrap, so that every queue wraps in its first few operations and
    /// a mistake there shows before 2³² items.
    const START: u32 = 0u32.wrapping_sub(CAP as u32 / 2);

    /// Returns an empty queue that does not grow.
    #[allow(dead_code)] // for tests
    pub(crate) fn new() -> Self {
        Self::with_slots((0..2 * CAP).map(|_| RingSlot::new()).collect())
    }

    /// Returns an empty queue that grows up to half of the number of these slots. They are unused,
    /// and at least `2 * CAP`.
    pub(crate) fn with_slots(slots: Box<[RingSlot<T>]>) -> Self {
        assert!(slots.len() >= 2 * CAP);
        Self {
            head: AtomicU32::new(Self::START),
            tail: AtomicU32::new(Self::START),
            size: AtomicU32::new(Self::SMALLEST),
            slots,
        }
    }

    /// Adds `item` as the newest, with a `note` for [`next_but`](Self::next_but), or hands it back
    /// if the queue is full and cannot grow. Returns the number of items, perhaps with some that
    /// stealers have just taken.
    ///
    /// # Safety
    ///
    /// Only the owner may call this, and owners that follow one another must be synchronised.
    pub(crate) unsafe fn push_back(
        &self,
        item: NonNull<T>,
        note: usize,
    ) -> Result<usize, NonNull<T>> {
        // Relaxed: the owner's own last store.
        let tail = self.tail.load(Relaxed);
        // Acquire, with the Release of a stealer's CAS: it has read the slot about to be reused.
        let head = self.head.load(Acquire);
        // Relaxed: the owner's own last store.
        let mut size = self.size.load(Relaxed);
        let len = tail.wrapping_sub(head);
        if len >= size {
            match self.grow(head, tail, size) {
                Some(larger) => size = larger,
                None => return Err(item),
            }
        }
        let slot = self.slot(size, tail);
        // Relaxed both: published by the next store; the note may be stale.
        slot.item.store(item.as_ptr(), Relaxed);
        slot.note.store(note, Relaxed);
        // Release, with the stealers' Acquire of `tail`: the slot, and the item's target.
        self.tail.store(tail.wrapping_add(1), Release);
        Ok(len as usize + 1)
    }

    /// Takes the oldest item.
    ///
    /// # Safety
    ///
    /// Only the owner may call this, and owners that follow one another must be synchronised.
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<T>> {
        // Relaxed: the owner's own last stores.
        let (tail, size) = (self.tail.load(Relaxed), self.size.load(Relaxed));
        // Relaxed, here and where the CAS fails: compared with the owner's own `tail` only.
        let mut head = self.head.load(Relaxed);
        loop {
            if head == tail {
                return None;
            }
            // Release, with the Acquire of `head` by stealers: the owner's `tail`.
            match self
                .head
                .compare_exchange_weak(head, head.wrapping_add(1), Release, Relaxed)
            {
                Ok(_) => return self.item(size, head),
                Err(moved) => head = moved,
            }
        }
    }

    /// Returns the pointer and the note of the item that is `n` places behind the oldest, if there
    /// is one. A stealer may take the item at any moment, so the caller must not follow the
    /// pointer. Only the owner calls this.
    #[inline]
    #[allow(dead_code)] // the models do without it
    pub(crate) fn next_but(&self, n: u32) -> Option<(*const T, usize)> {
        // Relaxed all: the owner's own last stores; any value of `head` will do.
        let (tail, size) = (self.tail.load(Relaxed), self.size.load(Relaxed));
        let head = self.head.load(Relaxed);
        if tail.wrapping_sub(head) <= n {
            return None;
        }
        let slot = self.slot(size, head.wrapping_add(n));
        Some((
            slot.item.load(Relaxed).cast_const(),
            slot.note.load(Relaxed),
        ))
    }

    /// Goes back to the smallest ring if there are few items: a large one passes through much more
    /// of the cache.
    ///
    /// # Safety
    ///
    /// Only the owner may call this, and owners that follow one another must be synchronised.
    pub(crate) unsafe fn shrink(&self) {
        let size = self.size.load(Relaxed); // Relaxed: the owner's own last store.
        if size == Self::SMALLEST {
            return;
        }
        // Relaxed and Acquire: as in `push_back`, which this is for the smallest ring.
        let tail = self.tail.load(Relaxed);
        let head = self.head.load(Acquire);
        if tail.wrapping_sub(head) <= Self::SMALLEST / 2 {
            self.move_items(head, tail, size, Self::SMALLEST);
        }
    }

    /// Moves on to a larger ring. Returns its size.
    #[cold]
    fn grow(&self, head: u32, tail: u32, size: u32) -> Option<u32> {
        let larger = size.checked_mul(GROWTH)?;
        if larger as usize > self.slots.len() / 2 {
            return None;
        }
        self.move_items(head, tail, size, larger);
        Some(larger)
    }

    /// Copies the items from one ring to another, which is in use from then on. Only the owner
    /// calls this.
    fn move_items(&self, head: u32, tail: u32, from: u32, to: u32) {
        for i in 0..tail.wrapping_sub(head) {
            let index = head.wrapping_add(i);
            // The owner's own stores; published by the next one.
            self.slot(to, index).copy(self.slot(from, index));
        }
        // Release, with the stealers' Acquire of `size`: the slots.
        self.size.store(to, Release);
    }

    /// Takes the older half of the items (or what `dest` has room for, and not too many), returns
    /// the oldest and adds the others to `dest`, in order. `None` if there was nothing to take.
    ///
    /// # Safety
    ///
    /// The caller must own `dest` in the sense of [`push_back`](Self::push_back).
    pub(crate) unsafe fn steal_into(&self, dest: &Self) -> Option<NonNull<T>> {
        // Relaxed and Acquire: as in `push_back`, which this is for `dest`.
        let dest_tail = dest.tail.load(Relaxed);
        let dest_head = dest.head.load(Acquire);
        let dest_size = dest.size.load(Relaxed);
        let room = dest_size - dest_tail.wrapping_sub(dest_head);

        // Acquire, here and where the CAS fails, with the Release of the CAS that stored this
        // head: the `tail` which that taker knew, so that the one read below is not older.
        let mut head = self.head.load(Acquire);
        loop {
            // Acquire, with the Release in `push_back` or below: the slots and the items.
            let tail = self.tail.load(Acquire);
            let n = half(tail.wrapping_sub(head)).min(room + 1).min(MOST_STOLEN);
            if n == 0 {
                return None;
            }
            // Acquire, with the Release in `move_items`: the slots of this ring.
            let size = self.size.load(Acquire);
            let oldest = self.item(size, head);
            for i in 1..n {
                // Read under the CAS below, published by the store of `tail`.
                let to = dest_tail.wrapping_add(i - 1);
                let from = self.slot(size, head.wrapping_add(i));
                dest.slot(dest_size, to).copy(from);
            }
            // Release, with the Acquire in `push_back`: this thread has read the slots; and with
            // the Acquire of `head` by other stealers: the `tail` read above.
            match self
                .head
                .compare_exchange(head, head.wrapping_add(n), Release, Acquire)
            {
                Ok(_) => {
                    // Release: as in `push_back`.
                    dest.tail.store(dest_tail.wrapping_add(n - 1), Release);
                    return oldest;
                }
                Err(moved) => head = moved,
            }
        }
    }

    /// Returns the number of items. Items that come and go during the call may all be counted.
    pub fn len(&self) -> usize {
        // Acquire: as in `steal_into`, so that `tail` is not older than `head`.
        let head = self.head.load(Acquire);
        // Relaxed: no item is looked at.
        let tail = self.tail.load(Relaxed);
        // `head` may be older than `tail` by more than the largest ring holds.
        (tail.wrapping_sub(head) as usize).min(self.slots.len() / 2)
    }

    /// Returns for how many more items there is room at least. Only the owner calls this.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn room(&self) -> usize {
        self.slots.len() / 2 - self.len()
    }

    /// Returns whether the queue was empty at some moment during the call.
    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    #[inline]
    fn slot(&self, size: u32, index: u32) -> &RingSlot<T> {
        let place = (index & (size - 1) | size) as usize;
        debug_assert!(place < self.slots.len());
        // SAFETY: below `2 * size`; `new` and `grow` see to it that a ring has that many slots.
        unsafe { self.slots.get_unchecked(place) }
    }

    /// Returns the item at `index`. The slot has been filled before, so the result is never `None`.
    #[inline]
    fn item(&self, size: u32, index: u32) -> Option<NonNull<T>> {
        // Relaxed: `head`, `tail` and `size` carry the ordering.
        NonNull::new(self.slot(size, index).item.load(Relaxed))
    }
}

impl<T, const CAP: usize> Default for LocalQueue<T, CAP> {
    fn default() -> Self {
        Self::new()
    }
}

/// Returns the share that is taken at once: half, rounded up so that a single item is taken too.
fn half(len: u32) -> u32 {
    len - len / 2
}
