//! The word by which senders and runner of a mailbox find each other; model-checked.
//!
//! ```text
//!   | items begun, 60 bits | ROOM | URGENT | END | HOLD |
//!
//!   sender, no room:  ask_for_room: sets ROOM, learns the count  -> counts again whether there is room
//!   runner:           try_begin: adds one, unless it has to look at a flag
//!                     begin: adds one, under the mailbox's lock, and looks
//! ```
//!
//! Flags are set and taken down under the mailbox's lock. Only `try_begin` is called without it.
//! All changes that may meet are read-modify-writes of this one word, so they are in one order,
//! whatever their memory ordering: either the runner's addition comes first, and the sender learns
//! of it, or the flag does, and the runner's exchange fails. All else that they share is under the
//! lock. So `Relaxed` is enough throughout; in `try_begin` a load and a store in place of the
//! exchange would not be. In `begin` they are: the runner counts, and has the lock besides.

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

    /// Returns the flags. They may have changed, unless the mailbox's lock is held.
    pub(crate) fn flags(&self) -> u64 {
        self.0.load(Ordering::Relaxed) & FLAGS
    }

    /// Sets a flag. Called under the mailbox's lock.
    pub(crate) fn set(&self, flag: u64) {
        self.0.fetch_or(flag, Ordering::Relaxed);
    }

    /// Takes a flag down. Called under the mailbox's lock.
    pub(crate) fn clear(&self, flag: u64) {
        self.0.fetch_and(!flag, Ordering::Relaxed);
    }

    /// Says that a sender waits for room. Returns the number of items begun until then. Called
    /// under the mailbox's lock.
    pub(crate) fn ask_for_room(&self) -> u64 {
        self.0.fetch_or(ROOM, Ordering::Relaxed) / ONE
    }

    /// Counts an item as begun, unless the runner has to look at a flag first. Senders that wait
    /// are a reason only at each `stride`th item.
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

    /// Counts an item as begun. Returns the number of items begun with it, if senders wait for
    /// room. Called under the mailbox's lock.
    pub(crate) fn begin(&self) -> Option<u64> {
        let before = self.0.load(Ordering::Relaxed);
        self.0.store(before + ONE, Ordering::Relaxed);
        (before & ROOM != 0).then_some(before / ONE + 1)
    }
}
