//! Stacks: the memory of a virtual thread's frames, TLS block and TCB.
//!
//! One *slot* holds all three. This is a small slot of the default class on x86-64, not to scale;
//! `glibc/layout` has the order of its upper parts on other processors:
//!
//! ```text
//!  end   +--------------------------------+
//!        | tail of struct pthread         |  last page: hardly ever touched
//!        +--------------------------------+ <- page boundary
//!        | head of struct pthread, 832 B  |
//!  tp    +--------------------------------+ <- FS base while mounted
//!        | TLS images                     |
//!        | TLS reserve for dlopen         |
//!        | dtv                            |
//!  top   +--------------------------------+ <- stack pointer at the start
//!        | frames                         |
//!        |   |                            |  a shallow thread touches this one page only
//!        +---v----------------------------+ <- page boundary
//!        | untouched                      |
//!        | …                              |
//!        +--------------------------------+
//!        | guard page                     |  any access is a stack overflow
//!  base  +--------------------------------+
//! ```
//!
//! The slot's size is the stack size plus the guard, one page or two, so that it is an odd number
//! of pages: 65 for 256 KiB, 513 for 2 MiB, if pages have 4 KiB.
//!
//! * [`class`]: the sizes of stacks; [`depth`]: how deep stacks are used.
//! * [`region`]: reserving address space and cutting it into slots with guards.
//! * [`pool`]: reserving, taking and freeing slots, also in a processor's own cache.
//! * [`slots`]: the slots of a class, of which the default one has two sizes.
//! * [`free_map`]: the free slots of a region, and which of them to give back to the system
//!   together.
//! * [`shortage`]: the memory that is left for stacks. [`stats`]: how many slots there are, and how
//!   much memory they have.

mod class;
pub mod depth;
mod free_map;
pub(crate) mod pool;
pub mod region;
pub mod shortage;
mod slots;
pub mod stats;

use crate::glibc::tls;
use core::ops::Range;
use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

pub use class::{LARGEST_STACK, SMALLEST_STACK, SizeClass, main_stack_size};
pub use slots::MOST_LARGE;

/// A slot, by number: the region in the high bits, the index in the region in the low ones. A
/// number identifies one slot for the life of the process.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Slot(pub u32);

impl Slot {
    /// Returns the slot at `index` of a region.
    fn new(region: usize, index: usize) -> Slot {
        Slot((region << region::SLOT_BITS | index) as u32)
    }

    /// Returns the number of its region.
    pub fn region(self) -> usize {
        self.0 as usize >> region::SLOT_BITS
    }

    /// Returns its index in the region.
    pub fn index(self) -> usize {
        self.0 as usize & (region::MAX_SLOTS - 1)
    }

    /// Returns the lowest address, where the guard starts.
    pub fn base(self) -> usize {
        region::region(self.region()).address(self.index())
    }

    /// Returns the size class of the slot.
    pub(crate) fn class(self) -> SizeClass {
        region::region(self.region()).class
    }

    /// Returns one past the highest address.
    pub fn end(self) -> usize {
        region::region(self.region()).address(self.index() + 1)
    }

    /// Returns the lowest address of the stack, above the guard.
    pub fn bottom(self) -> usize {
        self.end() - self.class().stack_bytes()
    }

    /// Returns the thread pointer of the TLS block in this slot.
    pub fn tp(self) -> usize {
        self.end() - tls::above()
    }

    /// Returns what libc calls the thread in this slot: its `pthread_t`.
    pub fn pthread(self) -> usize {
        tls::template().pthread_of(self.tp())
    }

    /// Returns where the frames are: all between the guard and the TLS block.
    pub fn frames(self) -> Range<usize> {
        self.bottom()..tls::template().frames_end(self.tp()) & !15
    }

    /// Returns the thread id that glibc sees. It is unique among live threads of both kinds,
    /// because the kernel allocates ids up to `pid_max`, at most 2^22 (`PID_MAX_LIMIT`), and a slot
    /// has one owner. It must fit in `FUTEX_TID_MASK`, 30 bits, since it becomes the owner field of
    /// locks.
    pub(crate) fn tid(self) -> u32 {
        Slot::FIRST_TID + self.0
    }

    const FIRST_TID: u32 = 1 << 22;
    /// The most slots that there can be.
    const MOST: u32 = (region::MAX_REGIONS * region::MAX_SLOTS) as u32;
    /// The number of ids that a slot has, all below 2^30.
    const TIDS: u32 = 15;

    /// Gives the thread that is about to start in the slot another id than the last one there had.
    /// C programs take an id that comes again at once for the same thread.
    pub fn renew_tid(self) {
        let number = u32::from(region::next_id(self, Slot::TIDS as u8));
        let place = tls::template().tid_place(self.tp());
        // SAFETY: in the TCB of this slot, whose thread has not started.
        unsafe { place.write(self.tid() + number * Slot::MOST) };
    }

    /// Makes the id of the thread that ends in the slot unknown, as the kernel does.
    pub fn forget_tid(self) {
        let place = tls::template().tid_place(self.tp());
        // SAFETY: in the TCB of this slot. Relaxed: no other data.
        unsafe { AtomicU32::from_ptr(place) }.store(0, Relaxed);
    }

    /// Returns the slot with this [thread id](Self::tid), which may not exist; `None` if no slot
    /// can have the id.
    pub fn of_tid(tid: u32) -> Option<Slot> {
        let number = tid.checked_sub(Slot::FIRST_TID)?;
        (number / Slot::MOST < Slot::TIDS).then_some(Slot(number % Slot::MOST))
    }
}

#[cfg(test)]
mod tests {
    use crate::sys::page_size;
    use std::process::Command;

    #[test]
    fn the_tests_of_this_folder_pass_with_larger_pages() {
        const SIZE: &str = "PIRN_TEST_PAGE_SIZE";
        let real = page_size();
        if std::env::var_os(SIZE).is_some() {
            return; // One of the processes below.
        }
        for size in [16 << 10, 64 << 10].into_iter().filter(|&size| size > real) {
            let mut tests = Command::new(std::env::current_exe().unwrap());
            tests.env(SIZE, size.to_string());
            let output = tests.arg("stack::").output().unwrap();
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success(), "{size}: {text}");
            assert!(!text.contains("running 0 tests"), "{text}");
        }
    }
}
