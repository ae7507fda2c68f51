//! A ring of events with one writer, which never waits, and readers that copy it meanwhile.
//!
//! An event is one or more slots of two words. The writer fills the slots behind the *head*, then
//! moves the head past them; when the ring is full it overwrites the oldest. A reader copies slots,
//! and then asks how far the writer has come: what may have been overwritten meanwhile is dropped.
//!
//! ```text
//!            head - len                         head      head + most
//!   indices  |                                  |         |
//!            +----------+-----------------------+---------+
//!            | unsafe   | kept                  | being   |
//!            | (most)   |                       | written |
//!            +----------+-----------------------+---------+
//!                         the slots being written have the oldest indices
//! ```
//!
//! Indices count from 0 and never wrap; `index % len` is the place in memory.
//!
//! ```text
//!   writer                                reader
//!   1. (head = i, from the event before)  a. read the head: the end of what to copy
//!   2. fence, Release                     b. read slots
//!   3. write slots i, i + 1, …            c. fence, Acquire
//!   4. head = i + n                       d. read the head again
//! ```
//!
//! If b sees something of 3, then the fences order 1 before d: the reader knows that slots up to
//! `i + most` are being written, and drops what was there before. `crates/pirn-model` checks this
//! file: `recorder_model.rs`.

use crate::primitives::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
    fence,
};

/// The content of a slot.
pub(crate) type Words = [u64; 2];

/// A place for two words.
#[repr(C)]
pub struct Slot([AtomicU64; 2]);

impl Slot {
    /// Returns an empty slot: zeros.
    #[allow(dead_code)] // the runtime's slots are zeroed memory
    pub(crate) fn new() -> Slot {
        Slot([AtomicU64::new(0), AtomicU64::new(0)])
    }
}

/// See the module's documentation.
pub struct Ring {
    /// The index behind the last slot that is complete.
    head: AtomicU64,
    /// Their number is a power of two.
    slots: &'static [Slot],
    /// The most slots of one event.
    most: usize,
}

/// What a reader has got.
#[derive(Debug, PartialEq, Eq)]
pub struct Copied {
    /// The index of the first slot.
    pub first: u64,
    /// The number of slots.
    pub count: usize,
}

impl Ring {
    /// Returns a ring in this memory, for events of at most this many slots.
    ///
    /// # Panics
    /// If the number of slots is not a power of two, or too small for one event.
    pub(crate) fn new(slots: &'static [Slot], most: usize) -> Ring {
        assert!(slots.len().is_power_of_two() && slots.len() > most);
        Ring {
            head: AtomicU64::new(0),
            slots,
            most,
        }
    }

    /// Returns the index of the next slot to be written.
    pub fn head(&self) -> u64 {
        // Acquire: pairs with the Release in `push`, for the slots.
        self.head.load(Acquire)
    }

    /// Writes an event. Called by the ring's only writer.
    #[inline(always)]
    pub(crate) fn push(&self, event: &[Words]) {
        debug_assert!(event.len() <= self.most);
        let head = self.head.load(Relaxed); // Relaxed: the writer's own.
        // Release: pairs with the Acquire fence in `copy`, for the head.
        fence(Release);
        for (index, words) in (head as usize..).zip(event) {
            let slot = &self.slots[index & (self.slots.len() - 1)];
            // Relaxed: ordered by the fence before and the head behind them.
            slot.0[0].store(words[0], Relaxed);
            slot.0[1].store(words[1], Relaxed);
        }
        // Release: pairs with the Acquire in `head` and `copy`, for the slots.
        self.head.store(head + event.len() as u64, Release);
    }

    /// Copies slots from index `from` on, as many as there are and fit into `place`. Those that
    /// have been overwritten are left out: then the first one's index is above `from`.
    pub fn copy(&self, from: u64, place: &mut [Words]) -> Copied {
        let head = self.head.load(Acquire); // Acquire: as in `head`.
        let first = from.max(self.oldest(head)).min(head);
        let count = place.len().min((head - first) as usize);
        for (index, words) in (first as usize..).zip(&mut place[..count]) {
            let slot = &self.slots[index & (self.slots.len() - 1)];
            // Relaxed: ordered by the head before, and checked by the fence behind them.
            *words = [slot.0[0].load(Relaxed), slot.0[1].load(Relaxed)];
        }
        // Acquire: pairs with the Release fence in `push`: a reader of a later slot sees the head.
        fence(Acquire);
        let oldest = self.oldest(self.head.load(Relaxed)); // Relaxed: ordered by the fence.
        let overwritten = (oldest.saturating_sub(first) as usize).min(count);
        place.copy_within(overwritten..count, 0);
        Copied {
            first: first + overwritten as u64,
            count: count - overwritten,
        }
    }

    /// Returns the first index that is certainly not being overwritten.
    fn oldest(&self, head: u64) -> u64 {
        (head + self.most as u64).saturating_sub(self.slots.len() as u64)
    }
}
