//! The run queue of one processor: a bounded ring with one owner and many stealers.
//!
//! ```text
//!             head                    tail
//!               │  oldest      newest  │
//!   ───┬────┬───▼┬────┬────┬────┬────┬─▼──┬────┬───    index i lives in slots[i mod CAP];
//!      │free│item│item│item│item│item│free│free│       tail - head (wrapping) ≤ CAP
//!   ───┴────┴────┴────┴────┴────┴────┴────┴────┴───
//!          consumers ──►               ──► owner
//! ```
//!
//! | operation   | who                  | step that makes it happen               |
//! |-------------|----------------------|-----------------------------------------|
//! | `push_back` | owner                | fill `slots[tail]`; store `tail + 1`    |
//! | `pop`       | owner                | CAS `head → head + 1`; read the slot    |
//! | `take_half` | owner                | CAS `head → head + n`; read the slots   |
//! | `steal_into`| anyone with a queue  | read the slots; CAS `head → head + n`   |
//!
//! Only the owner writes `tail` and slots. Everybody takes from the old end, and only by moving
//! `head`. So a compare-and-swap decides who gets an item, and each queue is FIFO. The scheme is
//! that of Go's `runq`.
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
//! A stealer that sleeps between its load and its CAS while exactly 2³² items pass would be
//! fooled (ABA). At 20 ns per item that is 86 s asleep and then hitting one index in 2³².

use core::ptr::{self, NonNull};

use crate::primitives::{
    AtomicPtr, AtomicU32,
    Ordering::{Acquire, Relaxed, Release},
};

/// A bounded FIFO queue of pointers with one owner and many stealers.
///
/// The queue only carries the pointers. It never follows them and drops nothing.
pub struct LocalQueue<T, const CAP: usize = 256> {
    /// Index of the oldest item. Moved by the taker of items, by compare-and-swap.
    head: AtomicU32,
    /// Index after the newest item. Written by the owner alone.
    tail: AtomicU32,
    slots: [AtomicPtr<T>; CAP],
}

impl<T, const CAP: usize> LocalQueue<T, CAP> {
    const MASK: u32 = {
        assert!(CAP.is_power_of_two() && CAP <= 1 << 31);
        CAP as u32 - 1
    };

    /// Indices start just below the wrap, so that every queue wraps in its first few operations and
    /// a mistake there shows before 2³² items.
    const START: u32 = 0u32.wrapping_sub(CAP as u32 / 2);

    /// Returns an empty queue.
    pub fn new() -> Self {
        Self {
            head: AtomicU32::new(Self::START),
            tail: AtomicU32::new(Self::START),
            slots: core::array::from_fn(|_| AtomicPtr::new(ptr::null_mut())),
        }
    }

    /// Adds `item` as the newest, or hands it back if the queue is full.
    ///
    /// # Safety
    ///
    /// Only the owner may call this, and owners that follow one another must be synchronised.
    pub unsafe fn push_back(&self, item: NonNull<T>) -> Result<(), NonNull<T>> {
        // Relaxed: the owner's own last store.
        let tail = self.tail.load(Relaxed);
        // Acquire, with the Release of a stealer's CAS: it has read the slot about to be reused.
        let head = self.head.load(Acquire);
        if tail.wrapping_sub(head) > Self::MASK {
            return Err(item);
        }
        // Relaxed: published by the next store.
        self.slot(tail).store(item.as_ptr(), Relaxed);
        // Release, with the stealers' Acquire of `tail`: the slot, and the item's target.
        self.tail.store(tail.wrapping_add(1), Release);
        Ok(())
    }

    /// Takes the oldest item.
    ///
    /// # Safety
    ///
    /// Only the owner may call this, and owners that follow one another must be synchronised.
    pub unsafe fn pop(&self) -> Option<NonNull<T>> {
        let (head, _) = self.claim(|len| len.min(1))?;
        self.item(head)
    }

    /// Takes the older half of the items (the larger half if their number is odd), passes them
    /// to `f` in order, and returns how many there were.
    ///
    /// If `f` panics, the rest of the half is lost.
    ///
    /// # Safety
    ///
    /// Only the owner may call this, and owners that follow one another must be synchronised.
    /// `f` must not add to this queue: that could overwrite a slot not yet read.
    pub unsafe fn take_half(&self, f: impl FnMut(NonNull<T>)) -> usize {
        let Some((head, n)) = self.claim(half) else {
            return 0;
        };
        (0..n)
            .filter_map(|i| self.item(head.wrapping_add(i)))
            .for_each(f);
        n as usize
    }

    /// Takes the older half of the items (or what `dest` has room for), returns the oldest and
    /// adds the others to `dest`, in order. `None` if there was nothing to take.
    ///
    /// # Safety
    ///
    /// The caller must own `dest` in the sense of [`push_back`](Self::push_back).
    pub unsafe fn steal_into(&self, dest: &Self) -> Option<NonNull<T>> {
        // Relaxed and Acquire: as in `push_back`, which this is for `dest`.
        let dest_tail = dest.tail.load(Relaxed);
        let dest_head = dest.head.load(Acquire);
        let room = CAP as u32 - dest_tail.wrapping_sub(dest_head);

        // Acquire, here and where the CAS fails, with the Release of the CAS that stored this
        // head: the `tail` which that taker knew, so that the one read below is not older.
        let mut head = self.head.load(Acquire);
        loop {
            // Acquire, with the Release in `push_back` or below: the slots and the items.
            let tail = self.tail.load(Acquire);
            let n = half(tail.wrapping_sub(head)).min(room + 1);
            if n == 0 {
                return None;
            }
            let oldest = self.item(head);
            for i in 1..n {
                // Relaxed both: read under the CAS below, published by the store of `tail`.
                let item = self.slot(head.wrapping_add(i)).load(Relaxed);
                let to = dest_tail.wrapping_add(i - 1);
                dest.slot(to).store(item, Relaxed);
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
        // `head` may be older than `tail` by more than the ring holds.
        (tail.wrapping_sub(head) as usize).min(CAP)
    }

    /// Returns whether the queue was empty at some moment during the call.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Moves `head` over `share(len)` items, unless that is 0. Returns the index of the first and
    /// the number of items. The owner's alone.
    fn claim(&self, share: impl Fn(u32) -> u32) -> Option<(u32, u32)> {
        // Relaxed: the owner's own last store.
        let tail = self.tail.load(Relaxed);
        // Relaxed, here and where the CAS fails: compared with the owner's own `tail` only.
        let mut head = self.head.load(Relaxed);
        loop {
            let n = share(tail.wrapping_sub(head));
            if n == 0 {
                return None;
            }
            // Release, with the Acquire of `head` by stealers: the owner's `tail`.
            match self
                .head
                .compare_exchange_weak(head, head.wrapping_add(n), Release, Relaxed)
            {
                Ok(_) => return Some((head, n)),
                Err(moved) => head = moved,
            }
        }
    }

    fn slot(&self, index: u32) -> &AtomicPtr<T> {
        &self.slots[(index & Self::MASK) as usize]
    }

    /// Returns the item at `index`. The slot has been filled before, so the result is never `None`.
    fn item(&self, index: u32) -> Option<NonNull<T>> {
        // Relaxed: `head` and `tail` carry the ordering.
        NonNull::new(self.slot(index).load(Relaxed))
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
