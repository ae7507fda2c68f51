//! A ring of events with many writers: platform threads, and signal handlers on carriers.
//!
//! A writer takes the next index, and claims the slot there by its sequence number. It never waits:
//! if another writer is still in the slot, because the kernel has suspended it for a whole round,
//! the event is dropped, and readers count it. So it may be called from signal handlers.
//!
//! ```text
//!   sequence of a slot   set by                             which means
//!   0                    (initially)                        never written
//!   2 i + 1              the writer of index i, at first    being written
//!   2 i + 2              the same, at last                  complete
//! ```
//!
//! `crates/pirn-model` checks this file: `recorder_model.rs`.

use crate::primitives::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The number of words of an event.
pub(crate) const WORDS: usize = 5;

/// The content of a slot.
pub(crate) type Event = [u64; WORDS];

/// A place for an event.
#[repr(C)]
pub(crate) struct SharedSlot {
    sequence: AtomicU64,
    words: [AtomicU64; WORDS],
}

impl SharedSlot {
    /// Returns a slot that has never been written.
    #[allow(dead_code)] // the runtime's slots are zeroed memory
    pub(crate) fn new() -> SharedSlot {
        SharedSlot {
            sequence: AtomicU64::new(0),
            words: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }
}

/// See the module's documentation.
pub struct SharedRing {
    /// The next index.
    next: AtomicU64,
    /// Their number is a power of two.
    slots: &'static [SharedSlot],
}

impl SharedRing {
    /// Returns a ring in this memory.
    ///
    /// # Panics
    /// If the number of slots is not a power of two.
    pub(crate) fn new(slots: &'static [SharedSlot]) -> SharedRing {
        assert!(slots.len().is_power_of_two());
        SharedRing {
            next: AtomicU64::new(0),
            slots,
        }
    }

    /// Returns the index of the next event.
    pub fn head(&self) -> u64 {
        self.next.load(Relaxed) // Relaxed: slots are ordered by their own sequence numbers.
    }

    /// Writes an event.
    pub(crate) fn push(&self, event: Event) {
        let index = self.next.fetch_add(1, Relaxed); // Relaxed: only uniqueness matters.
        let slot = &self.slots[index as usize & (self.slots.len() - 1)];
        let before = slot.sequence.load(Relaxed); // Relaxed: the exchange checks it.
        // Acquire: pairs with the Release at the end of the writer before, so that its words come
        // first. Relaxed on failure: nothing is concluded.
        let claimed = before.is_multiple_of(2)
            && before <= 2 * index
            && slot
                .sequence
                .compare_exchange(before, 2 * index + 1, Acquire, Relaxed)
                .is_ok();
        if !claimed {
            return; // Readers find it missing.
        }
        // Release: pairs with the Acquire fence in `read`, for the odd sequence number.
        fence(Release);
        for (place, word) in slot.words.iter().zip(event) {
            place.store(word, Relaxed); // Relaxed: ordered by the fence and the sequence number.
        }
        // Release: pairs with the Acquire in `read` and in the exchange above.
        slot.sequence.store(2 * index + 2, Release);
    }

    /// Returns the event at `index`; `None` if it is not complete, or has been overwritten.
    pub(crate) fn read(&self, index: u64) -> Option<Event> {
        let slot = &self.slots[index as usize & (self.slots.len() - 1)];
        // Acquire: pairs with the Release at the end of `push`, for the words.
        if slot.sequence.load(Acquire) != 2 * index + 2 {
            return None;
        }
        // Relaxed: ordered by the sequence number before, and checked by the fence behind them.
        let event = std::array::from_fn(|word| slot.words[word].load(Relaxed));
        // Acquire: pairs with the Release fence in `push`: a reader of a later word sees that the
        // sequence number has changed.
        fence(Acquire);
        (slot.sequence.load(Relaxed) == 2 * index + 2).then_some(event) // Relaxed: the fence.
    }

    /// Calls `f` with the events from index `from` on. Returns the next index, and how many were
    /// missing because they had been overwritten, or dropped.
    pub fn for_each(&self, from: u64, mut f: impl FnMut(Event)) -> (u64, u64) {
        let head = self.head();
        let first = from.max(head.saturating_sub(self.slots.len() as u64));
        let mut missing = first - from.min(first);
        for index in first..head {
            match self.read(index) {
                Some(event) => f(event),
                None => missing += 1,
            }
        }
        (head.max(from), missing)
    }
}
