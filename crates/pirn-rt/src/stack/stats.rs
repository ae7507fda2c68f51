//! How many slots there are, in which state, and how much memory they have.

use super::Slot;
use super::region::{self, Region};
use crate::sys::{SMALLEST_PAGE, call, page_size};
use core::sync::atomic::AtomicUsize;

/// How many slots are in which state.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct SlotStats {
    /// All slots that have been planned.
    pub planned: usize,
    /// Free slots that were in use a moment ago, and are not in the cache of a processor.
    pub(crate) warm: usize,
    /// Other free slots that have a guard.
    pub open: usize,
    /// Free slots without a guard: address space only.
    pub closed: usize,
}

impl SlotStats {
    /// Returns the sums.
    pub(super) fn plus(self, other: SlotStats) -> SlotStats {
        SlotStats {
            planned: self.planned + other.planned,
            warm: self.warm + other.warm,
            open: self.open + other.open,
            closed: self.closed + other.closed,
        }
    }
}

/// The memory of slots, in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Resident {
    /// The memory of slots for which the caller said `true`.
    pub used: u64,
    /// The memory of the other slots.
    pub free: u64,
}

/// The bytes of memory that the kernel is asked about at once.
const AT_ONCE: usize = 4 << 20;

/// Returns the resident memory of all slots of the process, by what `is_used` says of them.
///
/// The kernel is asked about at most `most` slots, a third of a microsecond each, evenly spread
/// over all: if there are more, the result is an estimate.
pub fn resident(most: usize, is_used: impl Fn(Slot) -> bool) -> Resident {
    let mut all = 0;
    region::for_each_open(|_| all += 1);
    let step = usize::div_ceil(all, most).max(1);
    let (mut resident, mut place, mut asked) = (Resident::default(), 0, 0);
    region::for_each_open(|slot| {
        if place % step == 0 {
            let bytes = (resident_pages(slot) * page_size()) as u64;
            match is_used(slot) {
                true => resident.used += bytes,
                false => resident.free += bytes,
            }
            asked += 1;
        }
        place += 1;
    });
    let scale = |bytes: u64| (u128::from(bytes) * all as u128 / (asked as u128).max(1)) as u64;
    Resident {
        used: scale(resident.used),
        free: scale(resident.free),
    }
}

/// Returns the number of pages of a slot that are in memory.
fn resident_pages(slot: Slot) -> usize {
    let mut pages = 0;
    let mut start = slot.bottom();
    while start < slot.end() {
        let bytes = (slot.end() - start).min(AT_ONCE);
        let mut touched = [0_u8; AT_ONCE / SMALLEST_PAGE];
        // SAFETY: one byte is written per page. It only asks.
        let asked = unsafe { call!(libc::SYS_mincore, start, bytes, touched.as_mut_ptr()) };
        if asked.is_ok() {
            let touched = &touched[..bytes / page_size()];
            pages += touched.iter().filter(|&&page| page & 1 != 0).count();
        }
        start += bytes;
    }
    pages
}

/// Returns the bytes of address space of all regions, and of the runtime's own data about them.
pub fn reserved() -> (usize, usize) {
    region::regions().fold((0, 0), |(addresses, data), (_, region)| {
        let users = region.users.capacity() * size_of::<AtomicUsize>();
        let data = data + size_of::<Region>() + users;
        (addresses + region.capacity * region.stride, data)
    })
}
