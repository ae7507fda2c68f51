//! The word by which senders and runner of a mailbox find each other. Model-checked.
//!
//! ```text
//!   | items begun, 60 bits | ROOM | URGENT | END | HOLD |
//!
//!   sender, no room:  ask_for_room: sets ROOM, returns the count  -> checks for room once more
//!   runner:           try_begin: adds one, unless a flag needs the lock
//!                     begin: adds one, under the mailbox's lock, and returns whether senders wait
//! ```
//!
//! Flags are set and cleared under the mailbox's lock. Only `try_begin` is called without it. All
//! changes that may race are read-modify-writes of this one word, so they have one order, whatever
//! their memory ordering: either the runner's addition comes first, and the sender sees it, or the
//! flag does, and the runner's exchange fails. The lock guards everything else that the two sides
//! share. So `Relaxed` is enough throughout. `try_begin` needs its exchange; `begin` needs only a
//! load and a store, since the runner alone counts, and holds the lock.

use crate::primitives::{AtomicU64, Ordering};

/// A sender waits for room.
pub(crate) const ROOM: u64 = 1;
/// There is an urgent item.
pub(crate) const URGENT: u64 = 2;
/// The actor is to end after the current item.
pub(crate) const END: u64 = 4;
/// The actor is to pause after the current item.
pub(crate) const HOLD: u64 = 8;
const FLAGS: u64 = ROOM | URGENT | END | HOLD;
/// One item.
const ONE: u64 = 16;

pub(crate) struct Word(AtomicU64);

impl Word {
    pub(crate) fn new() -> Word {
        Word(AtomicU64::new(0))
    }

    /// Returns the number of items begun.
    pub(crate) fn begun(&self) -> u64 {
        self.0.load(Ordering::Relaxed) / ONE
    }

    /// Returns the flags. They may change at once, unless the mailbox's lock is held.
    pub(crate) fn flags(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & FLAGS
    }

    /// Sets a flag. Called under the mailbox's lock.
    pub(crate) fn set(&self, flag: u64) {
        self.0.fetch_or(flag, Ordering::Relaxed);
    }

    /// Clears a flag. Called under the mailbox's lock.
    pub(crate) fn clear(&self, flag: u64) {
        self.0.fetch_and(!flag, Ordering::Relaxed);
    }

    /// Notes that a sender waits for room. Returns the number of items begun so far. Called under
    /// the mailbox's lock.
    pub(crate) fn ask_for_room(&self) -> u64 {
        self.0.fetch_or(ROOM, Ordering::Relaxed) / ONE
    }

    /// Counts an item as begun. Returns false if the runner has to look at a flag first. It looks
    /// at `ROOM` only at each `stride`th item.
    #[inline]
    pub(crate) fn try_begin(&self, stride: u64) -> bool {
        let word = self.0.load(Ordering::Relaxed);
        let may_begin = match word & FLAGS {
            0 => true,
            ROOM => !(word / ONE + 1).is_multiple_of(stride),
            _ => false,
        };
        let begun = word + ONE;
        let exchange = |to| {
            self.0
                .compare_exchange(word, to, Ordering::Relaxed, Ordering::Relaxed)
        };
        may_begin && exchange(begun).is_ok()
    }

    /// Counts an item as begun. If senders wait for room, returns the number of items begun, this
    /// one included. Called under the mailbox's lock.
    pub(crate) fn begin(&self) -> Option<u64> {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + ONE, Ordering::Relaxed);
        (before & ROOM != 0).then_some(before / ONE + 1)
    }
}
