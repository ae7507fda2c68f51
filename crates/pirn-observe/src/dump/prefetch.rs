//! Fetching what the walk will need soon: with a million threads nothing of them is in a cache, and
//! three lines are needed one after the other (entry, record, stack).
//!
//! ```text
//!   slot:   now       ... 8 before ...       16 before
//!           is walked     its stack,         its record
//!                         which the record   is fetched
//!                         says, is fetched
//! ```

use pirn_rt::stack::Slot;
use pirn_rt::vthread::table;

/// How far ahead records are fetched; stacks half as far.
const AHEAD: usize = 16;

/// The slots that are to be walked next, in a ring.
pub(super) struct Prefetch {
    ring: [Option<Slot>; AHEAD],
    /// The place of the oldest, where the next one goes.
    place: usize,
}

impl Prefetch {
    pub(super) const fn new() -> Prefetch {
        Prefetch {
            ring: [None; AHEAD],
            place: 0,
        }
    }

    /// Adds a slot. Returns the one to walk now.
    pub(super) fn push(&mut self, slot: Option<Slot>) -> Option<Slot> {
        if let Some(slot) = slot {
            table::fetch_record(slot);
        }
        if let Some(half) = self.ring[(self.place + AHEAD / 2) % AHEAD] {
            table::fetch_stack(half);
        }
        let due = core::mem::replace(&mut self.ring[self.place], slot);
        self.place = (self.place + 1) % AHEAD;
        due
    }

    /// Returns the slots that are left, in order.
    pub(super) fn rest(mut self) -> impl Iterator<Item = Slot> {
        (0..AHEAD).filter_map(move |_| self.push(None))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_slot_comes_out_once_and_in_order() {
        for count in [0, 1, AHEAD as u32, 100] {
            let mut prefetch = Prefetch::new();
            let slots = (0..count).map(|number| Slot((1 << 25) + number));
            let mut out: Vec<Slot> = slots
                .clone()
                .filter_map(|it| prefetch.push(Some(it)))
                .collect();
            out.extend(prefetch.rest());
            assert!(out.into_iter().eq(slots));
        }
    }
}
