//! A processor's own free slots, so that most threads start and end without the pool's lock.

use super::pool::Stacks;
use super::{SizeClass, Slot};
use crate::runtime::Runtime;
use crate::sanitizer::Ignored;

/// The maximum number of slots in a processor's cache.
pub(crate) const CACHE: usize = 64;
/// The number of slots moved between a processor and the pool at once.
const BATCH: usize = CACHE / 2;

/// A processor's own slots of the default class. Only its owner touches it.
pub(crate) struct SlotCache {
    slots: [Slot; CACHE],
    len: usize,
}

impl SlotCache {
    pub(crate) const fn new() -> SlotCache {
        SlotCache {
            slots: [Slot(0); CACHE],
            len: 0,
        }
    }

    /// Returns whether the next [`take`](Self::take) must use the pool.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes a slot for one of the caller's reservations.
    #[inline]
    pub(crate) fn take(&mut self, runtime: &Runtime) -> Slot {
        if self.len == 0 {
            self.refill(runtime);
        }
        self.len -= 1;
        self.slots[self.len]
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn put(&mut self, stacks: &Stacks, slot: Slot) {
        if self.len == CACHE {
            self.flush(stacks, CACHE - BATCH);
        }
        self.slots[self.len] = slot;
        self.len += 1;
    }

    #[cold]
    fn refill(&mut self, runtime: &Runtime) {
        let class = runtime.settings.default_class;
        self.len = runtime.stacks.fill(class, &mut self.slots[..BATCH]);
    }

    /// Gives back dense slots, so that the next threads get roomy ones.
    #[cold]
    pub(crate) fn prefer_roomy(&mut self, stacks: &Stacks) {
        let mut roomy = 0;
        for i in 0..self.len {
            if self.slots[i].class() == SizeClass::ROOMY {
                self.slots.swap(i, roomy);
                roomy += 1;
            }
        }
        stacks.put_all(&self.slots[roomy..self.len]);
        self.len = roomy;
    }

    /// Moves the coldest slots to the pool until `keep` are left.
    #[cold]
    pub(crate) fn flush(&mut self, stacks: &Stacks, keep: usize) {
        if self.len <= keep {
            return;
        }
        let _ignored = Ignored::new();
        let surplus = self.len - keep;
        stacks.put_all(&self.slots[..surplus]);
        self.slots.copy_within(surplus..self.len, 0);
        self.len = keep;
    }
}
