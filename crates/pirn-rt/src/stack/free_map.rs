//! The unused slots of one region, as bits; and which of them to give back together.
//!
//! A slot is in one of these states:
//!
//! | `free` | `used` | `open`, in the [`Region`] | |
//! |---|---|---|---|
//! | | | | in use, or in a processor's cache, or being given back |
//! | x | | | closed: no memory, no guard, no page table |
//! | x | | x | clean: its guard, and what [`KEEP`] leaves |
//! | x | x | x | dirty: used since it was last given back |
//!
//! The lowest free slot is taken first, so that the slots in use are close together. Then some page
//! tables, which cover 2 MiB each (32 MiB with pages of 16 KiB, 512 MiB with pages of 64), have
//! only free slots, and can be given back as well. The kernel (since Linux 6.14) frees a page table
//! when one call gives back all that it covers and no guard marker is left there. So neighbours are
//! given back together, as a [`Run`].

use super::region::{self, MAX_SLOTS, Region};
use super::{SizeClass, Slot, depth};
use crate::sys::page_size;
use core::ops::Range;

/// The maximum number of runs given back at once, and of slots in them.
const RUNS: usize = 32;
const RUN_SLOTS: usize = 256;
/// The number of free slots, the first of a pool, that stay as they are.
pub(super) const KEEP: usize = 256;
/// Pages at the top of a kept slot that are not given back.
const KEEP_TOP: usize = 4;
/// The maximum number of slots taken at once.
pub(super) const TAKE: usize = 64;

/// Returns the bytes that one page table covers: it is a page of words.
fn table_span() -> usize {
    page_size() / 8 * page_size()
}

/// One bit per slot of a region.
#[derive(Clone)]
struct Bits([u64; MAX_SLOTS / 64]);

impl Bits {
    const EMPTY: Bits = Bits([0; MAX_SLOTS / 64]);

    fn get(&self, i: usize) -> bool {
        self.0
            .get(i / 64)
            .is_some_and(|word| word >> (i % 64) & 1 != 0)
    }

    fn set(&mut self, i: usize, value: bool) {
        let bit = 1 << (i % 64);
        match value {
            true => self.0[i / 64] |= bit,
            false => self.0[i / 64] &= !bit,
        }
    }

    fn set_all(&mut self, range: Range<usize>, value: bool) {
        range.for_each(|i| self.set(i, value));
    }

    fn first(&self) -> Option<usize> {
        let i = self.0.iter().position(|&word| word != 0)?;
        Some(i * 64 + self.0[i].trailing_zeros() as usize)
    }
}

/// The slots of one region.
pub(super) struct FreeMap {
    pub(super) region: usize,
    /// The number of slots, the first of the region, that belong to it.
    planned: usize,
    /// The number of slots, the first of the region, that are never closed.
    keep: usize,
    free: Bits,
    used: Bits,
}

/// Free neighbours, to be given back together.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Run {
    slots: Range<usize>,
    /// Whether the guards go too, and page tables with them.
    close: bool,
    /// Bytes at the top that stay.
    keep: usize,
}

/// Runs that were taken out of a free map to be given back.
pub(super) struct Batch {
    pub(super) region: usize,
    runs: [Run; RUNS],
    len: usize,
}

impl FreeMap {
    /// Returns a free map without slots. The first `keep` that it will get are never closed.
    pub(super) fn new(region: usize, keep: usize) -> FreeMap {
        FreeMap {
            region,
            planned: 0,
            keep,
            free: Bits::EMPTY,
            used: Bits::EMPTY,
        }
    }

    fn region(&self) -> &'static Region {
        region::region(self.region)
    }

    /// Adds the next `count` slots of the region.
    pub(super) fn plan(&mut self, count: usize) {
        self.free.set_all(self.planned..self.planned + count, true);
        self.planned += count;
    }

    /// Returns how many more slots of the region can be added.
    pub(super) fn room(&self) -> usize {
        self.region().capacity - self.planned
    }

    /// Returns the slot that is added next.
    pub(super) fn next(&self) -> Slot {
        Slot::new(self.region, self.planned)
    }

    /// Returns the number of free slots.
    pub(super) fn free(&self) -> usize {
        self.free
            .0
            .iter()
            .map(|word| word.count_ones() as usize)
            .sum()
    }

    /// Takes the lowest free slots. Returns their number, and how many of them, the first ones,
    /// have no guard yet: the caller installs it.
    pub(super) fn take(&mut self, out: &mut [Slot]) -> (usize, usize) {
        let (mut len, mut unguarded) = (0, 0);
        while len < out.len()
            && let Some(i) = self.free.first()
        {
            self.free.set(i, false);
            self.used.set(i, false);
            out[len] = Slot::new(self.region, i);
            if !self.region().is_open(i) {
                out.swap(len, unguarded);
                unguarded += 1;
            }
            len += 1;
        }
        (len, unguarded)
    }

    /// Adds a slot that is no longer in use.
    pub(super) fn put(&mut self, index: usize) {
        self.free.set(index, true);
        self.used.set(index, true);
    }

    /// Takes dirty slots, with neighbours, to be given back. Returns `None` if none is dirty.
    pub(super) fn take_dirty(&mut self) -> Option<Batch> {
        let mut batch = Batch {
            region: self.region,
            runs: [const { Run::NONE }; RUNS],
            len: 0,
        };
        let mut slots = 0;
        while batch.len < RUNS
            && slots < RUN_SLOTS
            && let Some(dirty) = self.used.first()
        {
            let run = self.run_at(dirty, RUN_SLOTS - slots);
            self.free.set_all(run.slots.clone(), false);
            self.used.set_all(run.slots.clone(), false);
            slots += run.slots.len();
            batch.runs[batch.len] = run;
            batch.len += 1;
        }
        (batch.len > 0).then_some(batch)
    }

    /// Returns the run with the dirty slot `dirty`, and at most `limit` slots from there on.
    fn run_at(&self, dirty: usize, limit: usize) -> Run {
        if dirty < self.keep {
            return Run {
                slots: dirty..dirty + 1,
                close: false,
                keep: KEEP_TOP * page_size(),
            };
        }
        // Clean neighbours as well, as far as they share a page table with a dirty slot.
        let reach = match table_span().div_ceil(self.region().stride) {
            reach @ ..=RUN_SLOTS => reach,
            _ => 1, // No run is as long as a page table.
        };
        let lowest = dirty.saturating_sub(reach).max(self.keep);
        let mut start = dirty;
        while start > lowest && self.free.get(start - 1) {
            start -= 1;
        }
        let (mut end, mut last) = (dirty + 1, dirty);
        while self.free.get(end) && end <= last + reach && end - dirty < limit {
            if self.used.get(end) {
                last = end;
            }
            end += 1;
        }
        Run {
            close: self.spans_table(start..end) && !region::guards_cost_mappings(),
            slots: start..end,
            keep: 0,
        }
    }

    /// Adds a batch that has been given back. Returns the number of slots that have lost
    /// their guards.
    pub(super) fn put_back(&mut self, batch: &Batch) -> usize {
        let mut closed = 0;
        for run in batch.runs() {
            self.free.set_all(run.slots.clone(), true);
            if run.close {
                let region = self.region();
                for i in run.slots.clone().filter(|&i| region.is_open(i)) {
                    region.note_closed(i);
                    closed += 1;
                }
            }
        }
        closed
    }

    /// Returns whether these slots cover all that some page table covers.
    fn spans_table(&self, slots: Range<usize>) -> bool {
        let [start, end] = [slots.start, slots.end].map(|i| self.region().address(i));
        start.next_multiple_of(table_span()) + table_span() <= end
    }
}

impl Run {
    const NONE: Run = Run {
        slots: 0..0,
        close: false,
        keep: 0,
    };
}

impl Batch {
    /// Returns the class of the slots.
    pub(super) fn class(&self) -> SizeClass {
        region::region(self.region).class
    }

    fn runs(&self) -> &[Run] {
        &self.runs[..self.len]
    }

    /// Gives the memory back to the system.
    pub(super) fn give_back(&self) {
        let slot = |i| Slot::new(self.region, i);
        if self.class() == SizeClass::LARGE {
            let slots = self.runs().iter().flat_map(|run| run.slots.clone());
            depth::look(slots.map(slot));
            depth::warn();
        }
        let whole = |run: &Run| slot(run.slots.start).base()..slot(run.slots.end - 1).end();
        let memory = |run: &Run| {
            let first = slot(run.slots.start);
            let start = if run.close {
                first.base()
            } else {
                first.bottom()
            };
            start..(whole(run).end - run.keep).max(start)
        };
        // A guard that could not be removed does no harm: it is installed again before use.
        let closed = self.runs().iter().filter(|run| run.close).map(whole);
        // SAFETY: the slots were free when they were taken, for this batch alone.
        unsafe {
            region::advise(closed, region::REMOVE_GUARDS);
            region::advise(self.runs().iter().map(memory), libc::MADV_DONTNEED);
        }
    }
}

#[cfg(test)]
mod tests;
