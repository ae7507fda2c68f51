//! The sizes of stacks, exact to the page.
//!
//! All slots of a class have one size, so that an ended thread's slot fits the next thread. Powers
//! of two are always there. The first [`EXACT`] other sizes that are asked for get classes of their
//! own; later ones are rounded up to a power of two.

use crate::sys::{SMALLEST_PAGE, page_size};
use core::sync::atomic::{AtomicU32, Ordering};

/// Bytes of the smallest stack, which has at least two pages.
pub const SMALLEST_STACK: usize = 16 << 10;
/// Bytes of the largest stack.
pub const LARGEST_STACK: usize = 1 << 30;

/// Powers of two of pages, from the first on, as many as there are of the smallest pages.
const POWERS: usize = (LARGEST_STACK / SMALLEST_PAGE).trailing_zeros() as usize + 1;
/// The maximum number of other sizes.
const EXACT: usize = 44;
/// The classes after the powers of two: the other sizes, and the two sizes of the default class.
const OTHERS: usize = EXACT + 2;
/// The pages of the stacks in each of these classes; 0 while the class does not exist.
static PAGES: [AtomicU32; OTHERS] = [const { AtomicU32::new(0) }; OTHERS];

/// Returns the bytes of the stack that the kernel gives the first thread of a process, or 8 MiB if
/// `ulimit -s` sets no limit.
pub fn main_stack_size() -> usize {
    const UNLIMITED: usize = 8 << 20;
    let mut limit = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: an rlimit to be filled in.
    unsafe { libc::getrlimit(libc::RLIMIT_STACK, &mut limit) };
    match limit.rlim_cur {
        libc::RLIM_INFINITY => UNLIMITED,
        bytes => usize::try_from(bytes).map_or(UNLIMITED, |bytes| bytes.min(LARGEST_STACK)),
    }
}

/// A size of stacks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SizeClass(u8);

impl SizeClass {
    pub(crate) const COUNT: usize = POWERS + OTHERS;

    /// The default class, if its slots have two sizes: see [`default`](super::default).
    pub(crate) const SMALL: SizeClass = SizeClass((POWERS + EXACT) as u8);
    /// The larger slots of the default class.
    pub const LARGE: SizeClass = SizeClass((POWERS + EXACT + 1) as u8);

    /// Returns the default class, of stacks of `small` and, while threads are few, `large` bytes.
    /// Called at the start, before there are threads.
    pub fn set_default(small: usize, large: usize) -> SizeClass {
        let [small, large] = [small, large].map(pages);
        if large <= small {
            return SizeClass::for_bytes(small * page_size());
        }
        for (class, pages) in [(SizeClass::SMALL, small), (SizeClass::LARGE, large)] {
            // Relaxed: a thread that makes virtual threads has been told of the start.
            PAGES[class.index() - POWERS].store(pages as u32, Ordering::Relaxed);
        }
        SizeClass::SMALL
    }

    /// Returns the class with this index.
    pub(super) fn at(index: usize) -> SizeClass {
        SizeClass(index as u8)
    }

    /// Returns the class of `bytes`, rounded up to pages, within the limits; or the smallest one
    /// above, if there are too many classes.
    pub fn for_bytes(bytes: usize) -> SizeClass {
        let pages = pages(bytes);
        let exact = if pages.is_power_of_two() {
            None
        } else {
            exact(pages as u32)
        };
        let power = || pages.next_power_of_two().trailing_zeros() as usize;
        SizeClass::at(exact.map_or_else(power, |i| POWERS + i))
    }

    /// Returns the bytes of stack in this class, with the TLS block and without the guard.
    pub fn stack_bytes(self) -> usize {
        match self.index().checked_sub(POWERS) {
            None => page_size() << self.0,
            // Relaxed: a value that never changes, which this thread has seen before.
            Some(i) => page_size() * PAGES[i].load(Ordering::Relaxed) as usize,
        }
    }

    /// Returns the bytes of address space of a slot: an odd number of pages, of which the lowest,
    /// one or two, are the guard.
    ///
    /// With an even number of pages from slot to slot, the tops of a million stacks would compete
    /// for a few of the TLB's sets.
    pub(crate) fn slot_bytes(self) -> usize {
        page_size() * ((self.stack_bytes() / page_size() + 1) | 1)
    }

    pub(super) fn index(self) -> usize {
        self.0.into()
    }
}

/// Returns the pages of a stack of `bytes`, within the limits.
fn pages(bytes: usize) -> usize {
    let [smallest, largest] = [SMALLEST_STACK, LARGEST_STACK].map(|bytes| bytes / page_size());
    bytes.div_ceil(page_size()).clamp(smallest.max(2), largest)
}

/// Returns the index of the class with this number of pages, which may be a new one. Returns `None`
/// if there are too many.
fn exact(pages: u32) -> Option<usize> {
    PAGES[..EXACT].iter().position(|class| {
        // Relaxed: only the number itself is published.
        match class.compare_exchange(0, pages, Ordering::Relaxed, Ordering::Relaxed) {
            Ok(_) => true,
            Err(taken) => taken == pages,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_exact_to_the_page_until_there_are_too_many() {
        let page = page_size();
        let smallest = SMALLEST_STACK.max(2 * page);
        let size = |bytes| SizeClass::for_bytes(bytes).stack_bytes();
        for (asked, got) in [
            (0, smallest),
            (smallest, smallest),
            (smallest + 1, smallest + page),
            (25 * page - 1, 25 * page),
            (256 << 10, 256 << 10),
            (3 << 20, 3 << 20),
            (usize::MAX, LARGEST_STACK),
        ] {
            assert_eq!(size(asked), got);
            assert_eq!(SizeClass::for_bytes(asked), SizeClass::for_bytes(asked));
        }
        let many = (1..2 * EXACT).map(|i| (16 << 20) + i * page);
        let sizes = Vec::from_iter(many.map(|asked| (asked, size(asked))));
        let exact = sizes.iter().filter(|(asked, got)| asked == got).count();
        assert!((1..=EXACT).contains(&exact), "{exact}");
        assert!(
            sizes
                .iter()
                .all(|(asked, got)| asked == got || *got == 32 << 20)
        );
    }

    #[test]
    fn slots_have_an_odd_number_of_pages_and_room_for_a_guard() {
        let page = page_size();
        for asked in [16, 20, 64, 100, 256, 300, 1028, 2048].map(|kib| kib << 10) {
            let class = SizeClass::for_bytes(asked);
            assert_eq!(class.slot_bytes() % page, 0);
            assert_eq!(class.slot_bytes() / page % 2, 1);
            let guard = class.slot_bytes() - class.stack_bytes();
            assert!(guard == page || guard == 2 * page);
        }
    }
}
