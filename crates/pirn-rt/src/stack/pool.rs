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
//! and, where all neighbours are free, the page tables too ([`row`](super::row)).

use super::cache::CACHE;
use super::census::Census;
use super::default::Slots;
use super::shortage::Shortage;
use super::supply::Supply;
use super::{SizeClass, Slot, depth, region};
use crate::lock::Lock;
use crate::sanitizer::Ignored;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicIsize, Ordering};

struct ClassPool {
    /// The number of slots that may still be reserved.
    available: AtomicIsize,
    /// Whether [`trim`](Stacks::trim) has anything to do.
    dirty: AtomicBool,
    guarded: Lock<Guarded>,
}

/// The slots of one class, and what protects them.
struct Guarded {
    slots: Slots,
    /// Whether somebody is giving memory back.
    trimming: bool,
}

/// The slots of one runtime, by size class.
pub struct Stacks {
    pools: [ClassPool; SizeClass::COUNT],
    /// Whether [`trim`](Stacks::trim) may have anything to do.
    dirty: AtomicBool,
    /// The number of dense slots, if the default class has roomy ones as well.
    dense: AtomicIsize,
}

impl Stacks {
    /// Returns empty pools. Up to `caches` processors may hold slots of the class `default` in
    /// their caches.
    pub(crate) fn new(default: SizeClass, caches: usize) -> Stacks {
        let class = |index| {
            let surplus = if index == default.index() {
                caches * CACHE
            } else {
                0
            };
            ClassPool::new(SizeClass::at(index), surplus)
        };
        Stacks {
            pools: core::array::from_fn(class),
            dirty: AtomicBool::new(false),
            dense: AtomicIsize::new(0),
        }
    }

    fn pool(&self, class: SizeClass) -> &ClassPool {
        let roomy = class == SizeClass::ROOMY;
        let class = if roomy { SizeClass::DENSE } else { class };
        &self.pools[class.index()]
    }

    /// Returns whether dense slots exist, but threads have become so few that roomy ones suffice.
    #[inline]
    pub(crate) fn has_roomy_to_spare(&self) -> bool {
        let dense = self.dense.load(Ordering::Relaxed); // Relaxed: a hint.
        // Relaxed: as above.
        dense > 0
            && self
                .pool(SizeClass::DENSE)
                .available
                .load(Ordering::Relaxed)
                >= dense
    }

    /// Looks how deep stacks have been used, if that matters. For the monitor, each tick.
    pub(crate) fn watch(&self) {
        // Relaxed: as above.
        if self.dense.load(Ordering::Relaxed) > 0 {
            depth::look_on();
        }
    }

    /// Reserves `count` slots of `class` for threads that are about to be spawned.
    pub(crate) fn reserve(&self, class: SizeClass, count: usize) -> Result<(), Shortage> {
        let pool = self.pool(class);
        let count = count as isize;
        // Relaxed: a counter; the slots themselves move under the lock.
        if pool.available.fetch_sub(count, Ordering::Relaxed) >= count {
            return Ok(());
        }
        pool.available.fetch_add(count, Ordering::Relaxed); // Relaxed: as above.
        let mut guarded = pool.guarded.lock();
        // Relaxed: as above; growth happens under the lock.
        while pool.available.fetch_sub(count, Ordering::Relaxed) < count {
            pool.available.fetch_add(count, Ordering::Relaxed);
            let created = guarded.slots.extend()?;
            pool.available
                .fetch_add(created as isize, Ordering::Relaxed);
        }
        if class == SizeClass::DENSE {
            let dense = guarded.slots.dense() as isize;
            self.dense.store(dense, Ordering::Relaxed); // Relaxed: a hint.
            drop(guarded);
            depth::warn();
        }
        Ok(())
    }

    /// Releases a reservation. The slot, if one was taken for it, has been [`put`](Self::put)
    /// before.
    pub fn unreserve(&self, class: SizeClass, count: usize) {
        // Relaxed: as in `reserve`.
        self.pool(class)
            .available
            .fetch_add(count as isize, Ordering::Relaxed);
    }

    /// Takes a slot for one of the caller's reservations.
    pub(crate) fn take(&self, class: SizeClass) -> Slot {
        let mut slot = [Slot(0)];
        self.fill(class, &mut slot);
        slot[0]
    }

    /// Takes at least one slot.
    pub(super) fn fill(&self, class: SizeClass, cache: &mut [Slot]) -> usize {
        let _ignored = Ignored::new();
        loop {
            let len = self.pool(class).guarded.lock().slots.take(cache);
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
    pub(super) fn put_all(&self, slots: &[Slot]) {
        let Some(first) = slots.first() else { return };
        let _ignored = Ignored::new();
        let pool = self.pool(first.class());
        pool.guarded.lock().slots.put(slots);
        // Release, and in this order: pairs with the exchange in `trim`, which sees the first if it
        // takes the second.
        pool.dirty.store(true, Ordering::Release);
        self.dirty.store(true, Ordering::Release);
    }

    /// Returns how many slots of the class with this index are in which state.
    pub(super) fn census_of(&self, class: usize) -> Census {
        self.pools[class].guarded.lock().slots.census()
    }

    /// Returns whether [`trim`](Self::trim) would have anything to do.
    pub(crate) fn wants_trim(&self) -> bool {
        self.dirty.load(Ordering::Relaxed) // Relaxed: a hint.
    }

    /// Returns the memory of free slots to the system, a few slots at a time. Returns whether there
    /// is more.
    pub(crate) fn trim(&self) -> bool {
        // Acquire: pairs with the Release in `put_all`.
        self.dirty.swap(false, Ordering::Acquire);
        let mut more = false;
        for pool in &self.pools {
            // Relaxed: ordered by the exchange.
            if pool.dirty.load(Ordering::Relaxed) {
                more |= pool.trim_some();
            }
        }
        // Somebody else may still be trimming, or this caller may not go on.
        if self
            .pools
            .iter()
            .any(|pool| pool.dirty.load(Ordering::Relaxed))
        {
            self.dirty.store(true, Ordering::Relaxed); // Relaxed: a hint, set again.
        }
        more
    }
}

impl ClassPool {
    fn new(class: SizeClass, surplus: usize) -> ClassPool {
        ClassPool {
            available: AtomicIsize::new(0),
            dirty: AtomicBool::new(false),
            guarded: Lock::new(Guarded {
                slots: Slots::new(class, surplus),
                trimming: false,
            }),
        }
    }

    /// Gives back the memory of some free slots. Returns whether there may be more.
    fn trim_some(&self) -> bool {
        let claim = {
            let mut guarded = self.guarded.lock();
            // One at a time, since neighbours are to be given back together.
            if guarded.trimming {
                return false;
            }
            if guarded.slots.supplies().any(Supply::sort) {
                return true;
            }
            let Some(claim) = guarded.slots.supplies().find_map(Supply::claim) else {
                self.dirty.store(false, Ordering::Relaxed); // Relaxed: a hint.
                return false;
            };
            guarded.trimming = true;
            claim
        };
        // Outside the lock: spawning goes on meanwhile, and `take` waits for these slots if
        // necessary.
        claim.give_back();
        let class = region::region(claim.region()).class;
        let mut guarded = self.guarded.lock();
        guarded.slots.supply(class).put_back(&claim);
        guarded.trimming = false;
        true
    }
}
