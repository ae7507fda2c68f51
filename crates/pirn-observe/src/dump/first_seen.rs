//! Since when a thread has not moved. A park reads no clock: the thread's mounts are counted, and a
//! dump notes when it first saw a count. So a second dump knows which threads have waited since the
//! first.

use pirn_rt::stack::Slot;
use pirn_rt::stack::region::MAX_SLOTS;

/// The unit of the times that are kept, in nanoseconds.
const UNIT_NS: u64 = 10_000_000;

/// What was seen in a slot.
#[derive(Clone, Copy, Default)]
struct Sight {
    id: u64,
    mounts: u32,
    /// In units after the first dump.
    time: u32,
}

/// See the module's documentation.
pub(super) struct FirstSeen {
    /// For each region, if a thread was seen there, its slots.
    regions: Vec<Box<[Sight]>>,
    /// The time of the first dump, in nanoseconds since 1970.
    first: u64,
}

impl FirstSeen {
    pub(super) const fn new() -> FirstSeen {
        FirstSeen {
            regions: Vec::new(),
            first: 0,
        }
    }

    /// Notes a thread that waits in a slot, and how often it had been mounted. Returns the time of
    /// the dump that first saw it like this; `now` is that of this one.
    pub(super) fn note(&mut self, slot: Slot, id: u64, mounts: u32, now: u64) -> u64 {
        if self.first == 0 {
            self.first = now;
        }
        let region = slot.region();
        if region >= self.regions.len() {
            self.regions.resize_with(region + 1, Box::default);
        }
        if self.regions[region].is_empty() {
            self.regions[region] = vec![Sight::default(); MAX_SLOTS].into();
        }
        let sight = &mut self.regions[region][slot.index()];
        if (sight.id, sight.mounts) != (id, mounts) {
            let time = (now.saturating_sub(self.first) / UNIT_NS) as u32;
            *sight = Sight { id, mounts, time };
            return now;
        }
        self.first + u64::from(sight.time) * UNIT_NS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_moves_or_ends_is_seen_anew() {
        const START: u64 = 1_700_000_000_000_000_000;
        let mut sights = FirstSeen::new();
        let slot = Slot(3 << 12 | 5);
        assert_eq!(sights.note(slot, 7, 1, START), START);
        let later = START + 10 * UNIT_NS;
        assert_eq!(sights.note(slot, 7, 1, later), START);
        assert_eq!(sights.note(slot, 7, 2, later), later);
        assert_eq!(sights.note(slot, 7, 2, later + UNIT_NS), later);
        assert_eq!(sights.note(slot, 8, 2, later + UNIT_NS), later + UNIT_NS);
    }
}
