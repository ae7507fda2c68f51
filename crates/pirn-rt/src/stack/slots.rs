//! The slots of a class: which are planned, free and given back. The default class has large slots
//! while threads are few, small ones when they are many.
//!
//! Programs are written for the 2 MiB that `std` gives each thread. A stack that large costs a page
//! table, 4 KiB, beside the page that a parked thread uses; a million threads must not pay that. So
//! the first [`MOST_LARGE`] threads that are alive at a time get large slots (2 MiB), the others
//! small ones (256 KiB, 8 of which share a page table). If [`depth`] says that the program needs
//! more than a small slot has, all new slots are large, as long as page tables take no more than a
//! sixteenth of the memory that is left.

use super::free_map::{Batch, FreeMap, KEEP, TAKE};
use super::shortage::{Shortage, check_memory, mappings_allowed, memory_left, spare_addresses};
use super::stats::SlotStats;
use super::{SizeClass, Slot, depth, region};
use crate::sys::{self, page_size};
use core::sync::atomic::{AtomicUsize, Ordering};

/// The number of threads, alive at the same time, that have large slots in any case.
pub const MOST_LARGE: usize = 4096;
/// The maximum number of slots planned at once, and of the bytes of address space that they take.
const MOST_PLANNED: usize = 1024;
const MOST_PLANNED_BYTES: usize = 256 << 20;
/// Mappings reserved for the rest of the program (malloc, platform threads).
const OTHER_MAPPINGS: usize = 4096;
/// The maximum number of slots sorted into their maps at once.
const SORT: usize = 1024;

/// The number of slots whose guards are separate mappings, which the system limits.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// Returns the bytes of page tables that a slot of `class` takes: a word per page, and one table if
/// it does not share any.
fn table_bytes(class: SizeClass) -> usize {
    page_size().min(class.slot_bytes() / page_size() * 8)
}

/// The slots of a class: of one size, or of two.
pub(super) struct Slots {
    large: Option<SlotPool>,
    main: SlotPool,
    /// The number of slots still to be planned that must not be reserved.
    surplus: usize,
    /// Whether a thread gives memory of free slots back.
    pub(super) trimming: bool,
}

impl Slots {
    /// Returns no slots. The first `surplus` ones to come are not to be reserved.
    pub(super) fn new(class: SizeClass, surplus: usize) -> Slots {
        let large = class == SizeClass::SMALL;
        Slots {
            large: large.then(|| SlotPool::new(SizeClass::LARGE)),
            main: SlotPool::new(class),
            surplus,
            trimming: false,
        }
    }

    /// Moves free slots to `out`, large ones first. Returns their number.
    pub(super) fn take(&mut self, out: &mut [Slot]) -> usize {
        let large = self.large.as_mut().map_or(0, |large| large.take(out));
        if large > 0 {
            large
        } else {
            self.main.take(out)
        }
    }

    /// Adds slots that are no longer in use. Never allocates: [`SlotPool::extend`] makes room.
    pub(super) fn put(&mut self, slots: &[Slot]) {
        for &slot in slots {
            self.pool_of(slot.class()).warm.push(slot);
        }
    }

    /// Returns the number of small slots beside large ones.
    pub(super) fn small(&self) -> usize {
        self.large.as_ref().map_or(0, |_| self.main.planned)
    }

    /// Plans more slots. Returns how many of them may be reserved.
    pub(super) fn extend(&mut self) -> Result<usize, Shortage> {
        let made = match self.extend_large() {
            Some(made) => made,
            None => self.main.extend(usize::MAX)?,
        };
        let held_back = made.min(self.surplus);
        self.surplus -= held_back;
        Ok(made - held_back)
    }

    /// Plans more large slots. Returns `None` if there are enough, or cannot be more.
    fn extend_large(&mut self) -> Option<usize> {
        let large = self.large.as_mut()?;
        let planned = large.planned;
        let addresses = spare_addresses() / SizeClass::LARGE.slot_bytes();
        let mut limit = MOST_LARGE.min(addresses);
        if planned >= limit && depth::look_around() {
            limit = addresses.min(memory_left() as usize / 16 / table_bytes(SizeClass::LARGE));
        }
        if planned >= limit {
            return None;
        }
        large.extend(limit - planned).ok()
    }

    /// Returns how many slots are in which state.
    pub(super) fn stats(&mut self) -> SlotStats {
        let stats = self.pools().map(|pool| pool.stats());
        stats.fold(SlotStats::default(), SlotStats::plus)
    }

    /// Returns the pools of its sizes.
    pub(super) fn pools(&mut self) -> impl Iterator<Item = &mut SlotPool> {
        self.large.iter_mut().chain([&mut self.main])
    }

    /// Returns the pool with the slots of this class.
    pub(super) fn pool_of(&mut self, class: SizeClass) -> &mut SlotPool {
        match &mut self.large {
            Some(large) if class == SizeClass::LARGE => large,
            _ => &mut self.main,
        }
    }
}

/// The slots of one size.
pub(super) struct SlotPool {
    class: SizeClass,
    /// The warm ones, the last freed on top.
    warm: Vec<Slot>,
    /// One free map per region, in the order of their numbers; the last one may have room.
    maps: Vec<FreeMap>,
    /// The maps before this one have no free slot.
    first_free: usize,
    /// The maps before this one have no dirty slot.
    first_dirty: usize,
    planned: usize,
    /// The number of free slots without guard, which will need memory when they are used.
    closed: usize,
}

impl SlotPool {
    /// Returns a slot pool without slots.
    fn new(class: SizeClass) -> SlotPool {
        SlotPool {
            class,
            warm: Vec::new(),
            maps: Vec::new(),
            first_free: 0,
            first_dirty: 0,
            planned: 0,
            closed: 0,
        }
    }

    /// Moves free slots to `out`, warm ones first, until it is full or no more are left. If none is
    /// warm, takes at most [`TAKE`].
    fn take(&mut self, out: &mut [Slot]) -> usize {
        let mut len = 0;
        while len < out.len()
            && let Some(slot) = self.warm.pop()
        {
            out[len] = slot;
            len += 1;
        }
        if len == 0 {
            let limit = out.len().min(TAKE);
            len = self.take_cold(&mut out[..limit]);
        }
        len
    }

    fn take_cold(&mut self, out: &mut [Slot]) -> usize {
        while let Some(free_map) = self.maps.get_mut(self.first_free) {
            let (len, unguarded) = free_map.take(out);
            self.closed -= unguarded;
            if region::install_guards(&out[..unguarded]).is_err() {
                // Without memory for a page table the next page fault would fail as well. Without
                // a mapping, which a guard takes in locked memory, a slot would have no guard.
                sys::fatal(&[
                    "no memory for the guard page of a stack; or, in locked memory (mlockall), no \
                     memory mapping: raise the sysctl vm.max_map_count",
                ]);
            }
            if len > 0 {
                return len;
            }
            self.first_free += 1;
        }
        0
    }

    /// Returns how many slots are in which state.
    fn stats(&self) -> SlotStats {
        let free: usize = self.maps.iter().map(FreeMap::free).sum();
        SlotStats {
            planned: self.planned,
            warm: self.warm.len(),
            open: free.saturating_sub(self.closed),
            closed: self.closed,
        }
    }

    /// Plans more slots, at most `most`. Returns their number.
    fn extend(&mut self, most: usize) -> Result<usize, Shortage> {
        let at_once = (MOST_PLANNED_BYTES / self.class.stack_bytes()).clamp(1, MOST_PLANNED);
        let wanted = at_once.min(most);
        let each = page_size() + table_bytes(self.class);
        check_memory(((self.closed + wanted) * each) as u64)?;
        self.warm
            .try_reserve(self.planned + wanted - self.warm.len())
            .map_err(|_| Shortage::Lists)?;
        if self.maps.last().is_none_or(|last| last.room() == 0) {
            self.maps.try_reserve(1).map_err(|_| Shortage::Lists)?;
            let keep = if self.maps.is_empty() { KEEP } else { 0 };
            let region = region::reserve(self.class, most)?;
            self.maps.push(FreeMap::new(region, keep));
        }
        let made = self.plan(wanted)?;
        self.planned += made;
        self.first_free = self.first_free.min(self.maps.len() - 1);
        Ok(made)
    }

    /// Makes slots of the last region available, at most `wanted`. Returns their number: at least
    /// one, even if a step fails.
    fn plan(&mut self, wanted: usize) -> Result<usize, Shortage> {
        let Some(last) = self.maps.last_mut() else {
            return Ok(0);
        };
        let count = wanted.min(last.room());
        if !region::guards_cost_mappings() {
            last.plan(count);
            self.closed += count;
            return Ok(count);
        }
        // Relaxed, twice: a counter over all classes; an approximate value suffices.
        let all = GUARDED.load(Ordering::Relaxed) + count;
        if 2 * all + OTHER_MAPPINGS > mappings_allowed() {
            return Err(Shortage::MappingsToSpare);
        }
        // Each may fail, and that must be an error of `spawn`, so it is done now.
        for made in 0..count {
            match region::install_guards(&[last.next()]) {
                Ok(()) => last.plan(1),
                Err(e) if made == 0 => return Err(e),
                Err(_) => return Ok(made),
            }
            GUARDED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(count)
    }

    /// Sorts some warm slots into their maps, as dirty ones. Returns whether there were any.
    pub(super) fn sort(&mut self) -> bool {
        let from = self.warm.len().saturating_sub(SORT);
        let any = from < self.warm.len();
        while self.warm.len() > from
            && let Some(slot) = self.warm.pop()
        {
            let at = self.map_of(slot.region());
            self.maps[at].put(slot.index());
            self.first_free = self.first_free.min(at);
            self.first_dirty = self.first_dirty.min(at);
        }
        any
    }

    /// Takes dirty slots to be given back. Returns `None` if none is dirty.
    pub(super) fn take_dirty(&mut self) -> Option<Batch> {
        while let Some(free_map) = self.maps.get_mut(self.first_dirty) {
            let batch = free_map.take_dirty();
            if batch.is_some() {
                return batch;
            }
            self.first_dirty += 1;
        }
        None
    }

    /// Adds a batch that has been given back.
    pub(super) fn put_back(&mut self, batch: &Batch) {
        let at = self.map_of(batch.region);
        self.closed += self.maps[at].put_back(batch);
        self.first_free = self.first_free.min(at);
    }

    /// Returns the index of the free map of a region, which was reserved for this pool.
    fn map_of(&self, region: usize) -> usize {
        self.maps
            .partition_point(|free_map| free_map.region < region)
    }
}
