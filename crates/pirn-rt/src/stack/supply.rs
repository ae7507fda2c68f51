//! The slots of one class that a pool has: planned, free and given back.

use super::census::Census;
use super::memory::{check_memory, mappings_allowed};
use super::region;
use super::row::{Claim, KEEP, Row, TAKE};
use super::shortage::Shortage;
use super::{PAGE, SizeClass, Slot};
use crate::sys;
use core::sync::atomic::{AtomicUsize, Ordering};

/// The maximum number of slots planned at once, and of the bytes of address space that they take.
const EXTENT: usize = 1024;
const EXTENT_BYTES: usize = 256 << 20;
/// How much memory each new stack will use, without its part of a page table.
const MEMORY_EACH: usize = PAGE;
/// Mappings reserved for the rest of the program (malloc, platform threads).
const OTHER_MAPPINGS: usize = 4096;
/// The maximum number of slots sorted into their rows at once.
const SORT: usize = 1024;

/// The number of slots whose guards are separate mappings, which the system limits.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// The slots of a class.
pub(super) struct Supply {
    class: SizeClass,
    /// The warm ones, the last freed on top.
    warm: Vec<Slot>,
    /// One row per region, in the order of their numbers; the last one may have room.
    rows: Vec<Row>,
    /// The rows before this one have no free slot.
    first_free: usize,
    /// The rows before this one have no dirty slot.
    first_dirty: usize,
    planned: usize,
    /// The number of free slots without guard, which will need memory when they are used.
    closed: usize,
}

impl Supply {
    /// Returns a supply without slots.
    pub(super) fn new(class: SizeClass) -> Supply {
        Supply {
            class,
            warm: Vec::new(),
            rows: Vec::new(),
            first_free: 0,
            first_dirty: 0,
            planned: 0,
            closed: 0,
        }
    }

    /// Moves free slots to `out`, warm ones first, until it is full or no more are left. If none is
    /// warm, takes at most [`TAKE`].
    pub(super) fn take(&mut self, out: &mut [Slot]) -> usize {
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
        while let Some(row) = self.rows.get_mut(self.first_free) {
            let (len, unguarded) = row.take(out);
            self.closed -= unguarded;
            if let Err(shortage) = region::install_guards(&out[..unguarded]) {
                // No memory for a page table: the next page fault would fail as well. Or no mapping
                // for a guard, since the program has locked its memory.
                sys::fatal(&[shortage.of_guard()]);
            }
            if len > 0 {
                return len;
            }
            self.first_free += 1;
        }
        0
    }

    /// Adds slots that are no longer in use. Never allocates: see `plan`.
    pub(super) fn put(&mut self, slots: &[Slot]) {
        self.warm.extend_from_slice(slots);
    }

    /// Returns the number of slots that have been planned.
    pub(super) fn planned(&self) -> usize {
        self.planned
    }

    /// Returns how many slots are in which state.
    pub(super) fn census(&self) -> Census {
        let free: usize = self.rows.iter().map(Row::free).sum();
        Census {
            planned: self.planned,
            warm: self.warm.len(),
            open: free.saturating_sub(self.closed),
            closed: self.closed,
        }
    }

    /// Plans more slots, at most `most`. Returns their number.
    pub(super) fn extend(&mut self, most: usize) -> Result<usize, Shortage> {
        let extent = (EXTENT_BYTES / self.class.stack_bytes()).clamp(1, EXTENT);
        let wanted = extent.min(most);
        let each = MEMORY_EACH + PAGE.min(self.class.slot_bytes() / 512);
        check_memory(((self.closed + wanted) * each) as u64)?;
        self.warm
            .try_reserve(self.planned + wanted - self.warm.len())
            .map_err(|_| Shortage::Lists)?;
        let room = |row: &Row| region::region(row.region).capacity - row.planned();
        if self.rows.last().map_or(0, room) == 0 {
            self.rows.try_reserve(1).map_err(|_| Shortage::Lists)?;
            let keep = if self.rows.is_empty() { KEEP } else { 0 };
            self.rows
                .push(Row::new(region::reserve(self.class, most)?, keep));
        }
        let count = self.rows.last().map_or(0, room).min(wanted);
        let made = self.plan(count)?;
        self.planned += made;
        self.first_free = self.first_free.min(self.rows.len() - 1);
        Ok(made)
    }

    /// Makes slots of the last region available. Returns their number: fewer than requested, but at
    /// least one, if a step fails.
    fn plan(&mut self, count: usize) -> Result<usize, Shortage> {
        let Some(row) = self.rows.last_mut() else {
            return Ok(0);
        };
        if !region::guards_cost_mappings() {
            row.plan(count);
            self.closed += count;
            return Ok(count);
        }
        // Relaxed: a counter over all classes; an approximate value suffices.
        let all = GUARDED.load(Ordering::Relaxed) + count;
        if 2 * all + OTHER_MAPPINGS > mappings_allowed() {
            return Err(Shortage::MappingsToSpare);
        }
        // Each may fail, and that must be an error of `spawn`, so it is done now.
        for made in 0..count {
            match region::install_guards(&[region::slot(row.region, row.planned())]) {
                Ok(()) => row.plan_guarded(),
                Err(e) if made == 0 => return Err(e),
                Err(_) => return Ok(made),
            }
            GUARDED.fetch_add(1, Ordering::Relaxed); // Relaxed: as above.
        }
        Ok(count)
    }

    /// Sorts some warm slots into their rows, as dirty ones. Returns whether there were any.
    pub(super) fn sort(&mut self) -> bool {
        let from = self.warm.len().saturating_sub(SORT);
        let any = from < self.warm.len();
        while self.warm.len() > from
            && let Some(slot) = self.warm.pop()
        {
            let at = self.row_of(slot.region());
            self.rows[at].put(slot.index());
            self.first_free = self.first_free.min(at);
            self.first_dirty = self.first_dirty.min(at);
        }
        any
    }

    /// Takes dirty slots to be given back. Returns `None` if none is dirty.
    pub(super) fn claim(&mut self) -> Option<Claim> {
        while let Some(row) = self.rows.get_mut(self.first_dirty) {
            let claim = row.claim();
            if claim.is_some() {
                return claim;
            }
            self.first_dirty += 1;
        }
        None
    }

    /// Adds what was claimed, and has been given back.
    pub(super) fn put_back(&mut self, claim: &Claim) {
        let at = self.row_of(claim.region());
        self.closed += self.rows[at].put_back(claim);
        self.first_free = self.first_free.min(at);
    }

    /// Returns the index of the row of a region, which was reserved for this supply.
    fn row_of(&self, region: usize) -> usize {
        self.rows.partition_point(|row| row.region < region)
    }
}
