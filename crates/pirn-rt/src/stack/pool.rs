//! Reserving, taking and freeing slots.
//!
//! `spawn` only *reserves* a slot; the first mount *takes* one. So a burst of short threads runs in
//! a few warm slots, and "no memory" is still an error of `spawn` and never of a mount: the pool
//! keeps `planned >= reserved + surplus`, where the surplus covers the slots that processors may
//! hold in their caches.
//!
//! ```text
//!   planned ──┬── closed: address space only, no guard
//!             ├── warm: used a moment ago
//!             ├── clean: given back to the system, but for the guard
//!             ├── in a processor's SlotCache (at most CACHE each, covered by the surplus)
//!             └── taken by a virtual thread
//! ```
//!
//! Memory: a free slot keeps the pages it has touched, so that they are warm for the next user.
//! [`Stacks::trim`], called when a carrier has been idle for a while, returns them to the system
//! and, where all neighbours are free, the page tables too ([`free_map`](super::free_map)).

use super::shortage::Shortage;
use super::slots::{SlotPool, Slots};
use super::stats::SlotStats;
use super::{SizeClass, Slot, depth};
use crate::lock::Lock;
use crate::sanitizer::Ignored;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

/// The maximum number of slots in a processor's cache.
pub(crate) const CACHE: usize = 64;
/// The number of slots moved between a processor and the pool at once.
const BATCH: usize = CACHE / 2;

/// The slots of one class.
struct ClassPool {
    /// The number of slots that may still be reserved.
    available: AtomicIsize,
    slots: Lock<Slots>,
}

/// The slots of one runtime, by size class.
pub struct Stacks {
    /// The class of the slots in the processors' caches.
    default_class: SizeClass,
    pools: [ClassPool; SizeClass::COUNT],
    /// Whether [`trim`](Stacks::trim) may have anything to do.
    dirty: AtomicBool,
    /// The number of small slots, if the default class has large ones as well.
    small: AtomicIsize,
}

impl Stacks {
    /// Returns empty pools. Up to `caches` processors may hold slots of the class `default` in
    /// their caches.
    pub(crate) fn new(default: SizeClass, caches: usize) -> Stacks {
        let pool = |index| {
            let cached = if index == default.index() { caches } else { 0 };
            ClassPool {
                available: AtomicIsize::new(0),
                slots: Lock::new(Slots::new(SizeClass::at(index), cached * CACHE)),
            }
        };
        Stacks {
            default_class: default,
            pools: core::array::from_fn(pool),
            dirty: AtomicBool::new(false),
            small: AtomicIsize::new(0),
        }
    }

    fn pool(&self, class: SizeClass) -> &ClassPool {
        let large = class == SizeClass::LARGE;
        let class = if large { SizeClass::SMALL } else { class };
        &self.pools[class.index()]
    }

    /// Returns whether small slots exist, but threads have become so few that large ones suffice.
    #[inline]
    pub(crate) fn has_large_to_spare(&self) -> bool {
        // Relaxed, twice: the caller may see the counts late, and take either class meanwhile.
        let small = self.small.load(Ordering::Relaxed);
        let available = &self.pool(SizeClass::SMALL).available;
        small > 0 && available.load(Ordering::Relaxed) >= small
    }

    /// Looks how deep stacks have been used, if that matters. For the monitor, each tick.
    pub(crate) fn watch(&self) {
        // Relaxed: the next tick looks again.
        if self.small.load(Ordering::Relaxed) > 0 {
            depth::look_on();
        }
    }

    /// Reserves `count` slots of `class` for threads that are about to be spawned.
    pub(crate) fn reserve(&self, class: SizeClass, count: usize) -> Result<(), Shortage> {
        let pool = self.pool(class);
        if pool.try_reserve(count) {
            return Ok(());
        }
        let mut slots = pool.slots.lock();
        while !pool.try_reserve(count) {
            pool.add_available(slots.extend()?);
        }
        if class == SizeClass::SMALL {
            let small = slots.small() as isize;
            self.small.store(small, Ordering::Relaxed); // Relaxed: readers may see it late.
            drop(slots);
            depth::warn();
        }
        Ok(())
    }

    /// Releases a reservation. The slot, if one was taken for it, has been [`put`](Self::put)
    /// before.
    pub fn unreserve(&self, class: SizeClass, count: usize) {
        self.pool(class).add_available(count);
    }

    /// Takes a slot for one of the caller's reservations.
    pub(crate) fn take(&self, class: SizeClass) -> Slot {
        let mut slot = [Slot(0)];
        self.fill(class, &mut slot);
        slot[0]
    }

    /// Takes at least one slot.
    fn fill(&self, class: SizeClass, cache: &mut [Slot]) -> usize {
        let _ignored = Ignored::new();
        loop {
            let len = self.pool(class).slots.lock().take(cache);
            if len > 0 {
                return len;
            }
            sys::os_yield(); // A trimmer holds it, for microseconds.
        }
    }

    /// Frees a slot.
    pub(crate) fn put(&self, slot: Slot) {
        self.put_all(&[slot]);
    }

    /// Frees slots of one class.
    fn put_all(&self, slots: &[Slot]) {
        let Some(first) = slots.first() else { return };
        let _ignored = Ignored::new();
        self.pool(first.class()).slots.lock().put(slots);
        // Release: pairs with the Acquire in `trim`, for the slots.
        self.dirty.store(true, Ordering::Release);
    }

    /// Returns how many slots are in which state.
    pub fn stats(&self) -> SlotStats {
        let stats = self.pools.iter().map(|pool| pool.slots.lock().stats());
        stats.fold(SlotStats::default(), SlotStats::plus)
    }

    /// Returns whether [`trim`](Self::trim) would have anything to do.
    pub(crate) fn wants_trim(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) // Relaxed: `trim` acquires it.
    }

    /// Returns the memory of free slots to the system, a few slots at a time. Returns whether there
    /// is more.
    pub(crate) fn trim(&self) -> bool {
        // Acquire: pairs with the Release in `put_all`. Slots that are put later set it again.
        self.dirty.swap(false, Ordering::Acquire);
        let trimmed = self.pools.iter().map(ClassPool::trim_some);
        let more = trimmed.fold(false, |more, this| more | this);
        if more {
            // This caller may not go on. Relaxed: publishes nothing. Not a store, so that the edge
            // from a `put_all` in between remains.
            self.dirty.fetch_or(true, Ordering::Relaxed);
        }
        more
    }
}

impl ClassPool {
    /// Reserves `count` slots, if that many may be reserved.
    #[inline]
    fn try_reserve(&self, count: usize) -> bool {
        let count = count as isize;
        // Relaxed: a counter; the slots themselves move under the lock.
        if self.available.fetch_sub(count, Ordering::Relaxed) >= count {
            return true;
        }
        self.add_available(count as usize);
        false
    }

    #[inline]
    fn add_available(&self, count: usize) {
        // Relaxed: as in `try_reserve`.
        self.available.fetch_add(count as isize, Ordering::Relaxed);
    }

    /// Gives back the memory of some free slots. Returns whether there may be more.
    fn trim_some(&self) -> bool {
        let batch = {
            let mut slots = self.slots.lock();
            // One thread at a time, since neighbours are to be given back together. It finds out
            // whether there are more.
            if slots.trimming {
                return false;
            }
            if slots.pools().any(SlotPool::sort) {
                return true;
            }
            let Some(batch) = slots.pools().find_map(SlotPool::take_dirty) else {
                return false;
            };
            slots.trimming = true;
            batch
        };
        // Outside the lock: spawning goes on meanwhile, and `take` waits for these slots if
        // necessary.
        batch.give_back();
        let mut slots = self.slots.lock();
        slots.pool_of(batch.class()).put_back(&batch);
        slots.trimming = false;
        true
    }
}

/// A processor's own free slots, of the default class, so that most threads start and end without
/// the pool's lock. Only the processor's holder touches it.
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
    pub(crate) fn take(&mut self, stacks: &Stacks) -> Slot {
        if self.len == 0 {
            self.refill(stacks);
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
    fn refill(&mut self, stacks: &Stacks) {
        self.len = stacks.fill(stacks.default_class, &mut self.slots[..BATCH]);
    }

    /// Gives back small slots, so that the next threads get large ones.
    #[cold]
    pub(crate) fn prefer_large(&mut self, stacks: &Stacks) {
        let mut large = 0;
        for i in 0..self.len {
            if self.slots[i].class() == SizeClass::LARGE {
                self.slots.swap(i, large);
                large += 1;
            }
        }
        stacks.put_all(&self.slots[large..self.len]);
        self.len = large;
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
