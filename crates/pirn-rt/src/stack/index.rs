//! From an address to the region that it may be in, in one step.
//!
//! Regions lie where the kernel puts them, in no order. The index divides the address space into
//! parts of 1 GiB; each part has a list of the regions that overlap it, mostly one or two. Nothing
//! is ever taken out, as regions are never freed.
//!
//! ```text
//!   address >> 30      0      1    ...   n     n+1   ...  2^17 - 1
//!                   +------+------+----+------+------+----+------+
//!   PARTS           |      |      |    |  |   |  |   |    |      |
//!                   +------+------+----+--|---+--|---+----+------+
//!                                       entry   entry -> entry -> null
//!                                     region 7  region 8  region 7
//! ```

use core::ops::Range;
use core::sync::atomic::{AtomicPtr, Ordering};

/// log2 of the bytes of a part: of the size of a region.
const PART_BITS: u32 = 30;
/// User space of x86-64 has addresses of 47 bits; `mmap` gives no others unless asked to.
const PARTS: usize = 1 << (47 - PART_BITS);

struct RegionEntry {
    region: usize,
    next: *const RegionEntry,
}

/// 1 MiB of addresses, of which the pages with regions in them are ever touched.
static LISTS: [AtomicPtr<RegionEntry>; PARTS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; PARTS];

/// Notes which addresses the region with this number has. Once per region.
pub(super) fn enter(region: usize, addresses: Range<usize>) {
    for list in &LISTS[addresses.start >> PART_BITS..=(addresses.end - 1) >> PART_BITS] {
        let entry = Box::into_raw(Box::new(RegionEntry {
            region,
            next: core::ptr::null(),
        }));
        // Relaxed: only a guess, which the exchange below corrects.
        let mut first = list.load(Ordering::Relaxed);
        loop {
            // SAFETY: the entry is ours until it is in the list.
            unsafe { (*entry).next = first };
            // Release: pairs with the Acquire in `regions_at`. Relaxed on failure: as above.
            match list.compare_exchange_weak(first, entry, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
    }
}

/// Returns the numbers of the regions that overlap the part of the address space with `address`.
pub(super) fn regions_at(address: usize) -> impl Iterator<Item = usize> {
    let list = LISTS.get(address >> PART_BITS);
    // Acquire: pairs with the Release in `enter`, which wrote the entry and all behind it.
    let mut next = list.map_or(core::ptr::null(), |list| {
        list.load(Ordering::Acquire).cast_const()
    });
    core::iter::from_fn(move || {
        // SAFETY: entries are never freed nor changed once they are in a list.
        let entry = unsafe { next.as_ref() }?;
        next = entry.next;
        Some(entry.region)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_found_at_each_of_its_parts_and_nowhere_else() {
        const GIB: usize = 1 << PART_BITS;
        // Low addresses, which the kernel gives out last: no region of a running runtime is there.
        let base = 64 * GIB;
        let found = |address| regions_at(address).collect::<Vec<_>>();
        enter(70_001, base + GIB - 4096..base + 2 * GIB + 1);
        enter(70_002, base + GIB..base + GIB + 4096);
        assert_eq!(found(base + GIB - 1), [70_001]);
        assert_eq!(found(base + GIB), [70_002, 70_001]);
        assert_eq!(found(base + 2 * GIB), [70_001]);
        assert!(found(base + 3 * GIB).is_empty());
        assert!(found(usize::MAX).is_empty(), "beyond user space");
    }
}
