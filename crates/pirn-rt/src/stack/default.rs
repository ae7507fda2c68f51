//! The default class: roomy slots while threads are few, dense ones when they are many.
//!
//! Programs are written for the 2 MiB that `std` gives each thread. A stack that large costs a page
//! table, 4 KiB, beside the page that a parked thread uses; a million threads must not pay that. So
//! the first [`ROOMY`] threads that are alive at a time get roomy slots (2 MiB), the others dense
//! ones (256 KiB, 8 of which share a page table). If [`depth`] says that the program needs more
//! than a dense slot has, all new slots are roomy, as long as page tables take no more than a
//! sixteenth of the memory that is left.

use super::census::Census;
use super::memory::{memory_left, spare_addresses};
use super::shortage::Shortage;
use super::supply::Supply;
use super::{SizeClass, Slot, depth};

/// The number of threads, alive at the same time, that have roomy slots in any case.
pub const ROOMY: usize = 4096;
/// Bytes of page tables per roomy slot.
const TABLE: u64 = 4096;

/// The slots of a class: of one size, or of two.
pub(super) struct Slots {
    roomy: Option<Supply>,
    main: Supply,
    /// The number of slots still to be planned that must not be reserved.
    surplus: usize,
}

impl Slots {
    /// Returns no slots. The first `surplus` ones to come are not to be reserved.
    pub(super) fn new(class: SizeClass, surplus: usize) -> Slots {
        let roomy = class == SizeClass::DENSE;
        Slots {
            roomy: roomy.then(|| Supply::new(SizeClass::ROOMY)),
            main: Supply::new(class),
            surplus,
        }
    }

    /// Moves free slots to `out`, roomy ones first. Returns their number.
    pub(super) fn take(&mut self, out: &mut [Slot]) -> usize {
        let roomy = self.roomy.as_mut().map_or(0, |roomy| roomy.take(out));
        if roomy > 0 {
            roomy
        } else {
            self.main.take(out)
        }
    }

    /// Adds slots that are no longer in use. Never allocates.
    pub(super) fn put(&mut self, slots: &[Slot]) {
        match &mut self.roomy {
            None => self.main.put(slots),
            Some(roomy) => {
                for slot in slots {
                    let supply = match slot.class() {
                        SizeClass::ROOMY => &mut *roomy,
                        _ => &mut self.main,
                    };
                    supply.put(core::slice::from_ref(slot));
                }
            }
        }
    }

    /// Returns the number of dense slots beside roomy ones.
    pub(super) fn dense(&self) -> usize {
        self.roomy.as_ref().map_or(0, |_| self.main.planned())
    }

    /// Plans more slots. Returns how many of them may be reserved.
    pub(super) fn extend(&mut self) -> Result<usize, Shortage> {
        let made = match self.extend_roomy() {
            Some(made) => made,
            None => self.main.extend(usize::MAX)?,
        };
        let held_back = made.min(self.surplus);
        self.surplus -= held_back;
        Ok(made - held_back)
    }

    /// Plans more roomy slots. Returns `None` if there are enough, or cannot be more.
    fn extend_roomy(&mut self) -> Option<usize> {
        let roomy = self.roomy.as_mut()?;
        let planned = roomy.planned();
        let addresses = spare_addresses() / SizeClass::ROOMY.slot_bytes();
        let mut limit = ROOMY.min(addresses);
        if planned >= limit && depth::look_around() {
            limit = addresses.min((memory_left() / 16 / TABLE) as usize);
        }
        if planned >= limit {
            return None;
        }
        roomy.extend(limit - planned).ok()
    }

    /// Returns how many slots are in which state.
    pub(super) fn census(&mut self) -> Census {
        let supplies = self.supplies().map(|supply| supply.census());
        supplies.fold(Census::default(), Census::plus)
    }

    /// Returns both supplies.
    pub(super) fn supplies(&mut self) -> impl Iterator<Item = &mut Supply> {
        self.roomy.iter_mut().chain([&mut self.main])
    }

    /// Returns the supply with the slots of this class.
    pub(super) fn supply(&mut self, class: SizeClass) -> &mut Supply {
        match &mut self.roomy {
            Some(roomy) if class == SizeClass::ROOMY => roomy,
            _ => &mut self.main,
        }
    }
}
