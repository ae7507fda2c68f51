//! Ids of threads and scopes.

use crate::mark::Raised;
use core::cell::Cell;
use core::sync::atomic::{AtomicU64, Ordering};

/// The number of ids that a processor takes at once.
const BLOCK: u64 = 64;

/// A block of ids that a processor has taken, some of which are still unused.
pub(crate) struct Ids {
    next: Cell<u64>,
    end: Cell<u64>,
}

impl Ids {
    /// Returns an empty block.
    #[inline]
    pub(crate) const fn new() -> Ids {
        Ids {
            next: Cell::new(0),
            end: Cell::new(0),
        }
    }

    /// Returns the next id, or the first of another block if this one is used up.
    #[inline]
    fn take(&self) -> u64 {
        let mut id = self.next.get();
        if id == self.end.get() {
            id = take_block(BLOCK);
            self.end.set(id + BLOCK);
        }
        self.next.set(id + 1);
        id
    }
}

/// Returns the first of `count` ids that are reserved for the caller.
fn take_block(count: u64) -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    // Relaxed: only uniqueness matters.
    NEXT.fetch_add(count, Ordering::Relaxed)
}

/// Returns an id that no other thread or scope of this process has or will have.
///
/// Ids stay small enough to read. Processors take them in blocks, because all carriers would
/// contend for a single counter.
#[inline]
pub fn next() -> u64 {
    let mark = Raised::new();
    match super::carrier(&mark).and_then(|carrier| carrier.processor()) {
        // SAFETY: this carrier holds the processor.
        Some(processor) => unsafe { processor.ids() }.take(),
        None => take_block(1),
    }
}
