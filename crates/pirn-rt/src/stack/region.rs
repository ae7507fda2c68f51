//! Reserving address space and cutting it into slots.
//!
//! A region is one `mmap` of up to a gigabyte, reserved but not committed (`MAP_NORESERVE`), and
//! without huge pages: one under a 256 KiB slot would cost 2 MiB. The guard at the bottom of a slot
//! is a page-table marker (`MADV_GUARD_INSTALL`, Linux 6.13) that costs no VMA. If the kernel does
//! not support it, or refuses it because the program has locked its memory (`mlockall`), `mprotect`
//! splits the mapping into two VMAs per slot, and `vm.max_map_count` becomes the limit.

use super::shortage::Shortage;
use super::{SizeClass, Slot};
use crate::arch;
use crate::environment;
use crate::sanitizer::valgrind;
use crate::sys::{self, Errno, call};
use core::mem::offset_of;
use core::ops::Range;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, AtomicU64, AtomicUsize, Ordering};

/// The low bits of a slot number, which count within a region.
pub(super) const SLOT_BITS: u32 = 12;
/// The maximum number of slots in a region.
pub const MAX_SLOTS: usize = 1 << SLOT_BITS;
/// The maximum number of regions: 64 million default slots.
pub(crate) const MAX_REGIONS: usize = 1 << 14;
/// The approximate number of bytes of a region.
const REGION_BYTES: usize = 1 << 30;
/// Address space that is left to the rest of the program (malloc, platform threads): without any, a
/// failed `spawn` would end in an abort elsewhere.
const ADDRESSES_LEFT: usize = 32 << 20;
/// `MADV_GUARD_INSTALL`, include/uapi/asm-generic/mman-common.h.
const MADV_GUARD_INSTALL: i32 = 102;
/// `MADV_GUARD_REMOVE`, from the same file. The slots need [new guards](install_guards) before they
/// are used.
pub(super) const REMOVE_GUARDS: i32 = 103;

/// One reserved range of addresses.
pub(super) struct Region {
    base: usize,
    pub(super) class: SizeClass,
    /// The bytes from slot to slot.
    pub(super) stride: usize,
    /// The number of slots it has room for.
    pub(super) capacity: usize,
    /// The index from which on no slot has been used.
    created: AtomicUsize,
    /// The slots that have a guard, one bit for each. Others have no memory.
    ///
    /// The pool that has the region changes them, under its lock.
    open: [AtomicU64; MAX_SLOTS / 64],
    /// For each slot of the class [`LARGE`](SizeClass::LARGE) its last [`User`], or 0; empty for
    /// other classes.
    pub(super) users: Vec<AtomicUsize>,
    /// For each slot, the [number](next_id) of the next thread there.
    next_ids: [AtomicU8; MAX_SLOTS],
}

/// Returns the name of the code that a thread runs.
pub(crate) type User = fn() -> &'static str;

static REGIONS: [AtomicPtr<Region>; MAX_REGIONS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; MAX_REGIONS];
static REGION_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Set once the kernel has reported that it does not support guard markers, or not any more.
static USE_MPROTECT: AtomicBool = AtomicBool::new(false);

/// Where readers outside of the process find the fields.
pub const LAYOUT: [(&str, usize); 4] = [
    ("regions.most", MAX_REGIONS),
    ("region.base", offset_of!(Region, base)),
    ("region.stride", offset_of!(Region, stride)),
    ("region.capacity", offset_of!(Region, capacity)),
];

/// Returns the addresses of the regions' addresses, and of their number.
pub const fn tables() -> [*const (); 2] {
    [
        (&raw const REGIONS).cast(),
        (&raw const REGION_COUNT).cast(),
    ]
}

/// Returns the region with this number, which [`reserve`] or a slot gave.
#[inline]
pub(super) fn region(number: usize) -> &'static Region {
    // Acquire: pairs with the Release in `publish`. SAFETY: such a number is given after the region
    // was published; regions are never freed.
    unsafe { &*REGIONS[number].load(Ordering::Acquire) }
}

/// Returns the region with this number, if there is one.
fn published(number: usize) -> Option<&'static Region> {
    // Acquire, SAFETY: as in `region`.
    unsafe { REGIONS.get(number)?.load(Ordering::Acquire).as_ref() }
}

/// Returns all regions, each with its number.
pub(super) fn regions() -> impl Iterator<Item = (usize, &'static Region)> {
    // Relaxed: a caller that asks about a slot has learnt of it in an ordered way.
    let count = REGION_COUNT.load(Ordering::Relaxed);
    (0..count).filter_map(|number| Some((number, published(number)?)))
}

impl Region {
    /// Returns where the slot with this index begins.
    #[inline]
    pub(super) fn address(&self, index: usize) -> usize {
        self.base + index * self.stride
    }

    /// Returns whether the slot with this index has ever been used, or a later one.
    fn has_created(&self, index: usize) -> bool {
        index < self.created.load(Ordering::Relaxed) // Relaxed: as in `regions`.
    }

    /// Returns whether the slot with this index has a guard.
    pub(super) fn is_open(&self, index: usize) -> bool {
        let (word, bit) = self.open_bit(index);
        word.load(Ordering::Relaxed) & bit != 0 // Relaxed: as in `regions`.
    }

    /// Notes that a free slot is closed: it needs a [guard](install_guards) before it is used.
    pub(super) fn note_closed(&self, index: usize) {
        let (word, bit) = self.open_bit(index);
        word.fetch_and(!bit, Ordering::Relaxed); // Relaxed: as in `regions`.
    }

    /// Notes that a slot is complete.
    fn note_open(&self, index: usize) {
        let (word, bit) = self.open_bit(index);
        word.fetch_or(bit, Ordering::Relaxed); // Relaxed, twice: as in `regions`.
        self.created.fetch_max(index + 1, Ordering::Relaxed);
    }

    /// Returns the place of a slot in [`open`](Self::open).
    fn open_bit(&self, index: usize) -> (&AtomicU64, u64) {
        (&self.open[index / 64], 1 << (index % 64))
    }

    /// Returns the indices of the slots that have a guard, from `first` on.
    fn open_from(&self, first: usize) -> impl Iterator<Item = usize> {
        let words = self.open.iter().enumerate().skip(first / 64);
        words.flat_map(move |(word, bits)| {
            let bits = bits.load(Ordering::Relaxed); // Relaxed: as in `regions`.
            let rests =
                core::iter::successors(Some(bits), |bits| Some(bits & bits.wrapping_sub(1)));
            let lowest = rests.take_while(|&bits| bits != 0);
            let indices = lowest.map(move |bits| word * 64 + bits.trailing_zeros() as usize);
            indices.skip_while(move |&index| index < first)
        })
    }
}

/// Reserves a region for at most `most` slots of `class`. Returns its number.
pub(super) fn reserve(class: SizeClass, most: usize) -> Result<usize, Shortage> {
    let stride = class.slot_bytes();
    let bytes = valgrind::largest_mapping(REGION_BYTES);
    let mut capacity = (bytes / stride).clamp(1, MAX_SLOTS.min(most));
    loop {
        match map(capacity * stride) {
            Ok(base) => {
                let users = if class == SizeClass::LARGE {
                    capacity
                } else {
                    0
                };
                return publish(Region {
                    base,
                    class,
                    stride,
                    capacity,
                    created: AtomicUsize::new(0),
                    open: [const { AtomicU64::new(0) }; _],
                    users: (0..users).map(|_| AtomicUsize::new(0)).collect(),
                    next_ids: [const { AtomicU8::new(0) }; _],
                });
            }
            Err(_) if capacity > 1 => capacity /= 4,
            Err(e) => return Err(Shortage::Addresses(e, class)),
        }
        capacity = capacity.max(1);
    }
}

/// Maps address space for stacks, unless less than [`ADDRESSES_LEFT`] would be left.
fn map(bytes: usize) -> sys::SysResult {
    let left = sys::map(ADDRESSES_LEFT + bytes, libc::MAP_NORESERVE)?;
    // The lower end: the kernel maps downwards, so that regions are adjacent, and one mapping.
    // SAFETY: a part of our own mapping.
    unsafe { call!(libc::SYS_munmap, left, ADDRESSES_LEFT) }?;
    let base = left + ADDRESSES_LEFT;
    // SAFETY: our own mapping. A kernel built without huge pages says EINVAL, which is fine.
    let _ = unsafe { call!(libc::SYS_madvise, base, bytes, libc::MADV_NOHUGEPAGE) };
    Ok(base)
}

fn publish(region: Region) -> Result<usize, Shortage> {
    // Relaxed: only a number; the pointer below carries the data.
    let number = REGION_COUNT.fetch_add(1, Ordering::Relaxed);
    if number >= MAX_REGIONS {
        // Relaxed: only a number; the pointer below carries the data.
        REGION_COUNT.fetch_sub(1, Ordering::Relaxed);
        let bytes = region.capacity * region.stride;
        // SAFETY: our own mapping, which no other code knows.
        let _ = unsafe { call!(libc::SYS_munmap, region.base, bytes) };
        return Err(Shortage::Regions);
    }
    let addresses = region.base..region.address(region.capacity);
    valgrind::reserved(addresses.clone());
    // Release: pairs with the Acquire in `region` and `published`.
    REGIONS[number].store(Box::into_raw(Box::new(region)), Ordering::Release);
    enter(number, addresses);
    Ok(number)
}

/// Returns the slot that contains an address.
pub fn slot_at(address: usize) -> Option<Slot> {
    regions_at(address).find_map(|number| {
        let region = region(number);
        let index = address.checked_sub(region.base)? / region.stride;
        region.has_created(index).then(|| Slot::new(number, index))
    })
}

/// Returns whether there is a slot with this number.
pub fn exists(slot: Slot) -> bool {
    published(slot.region()).is_some_and(|region| region.has_created(slot.index()))
}

/// Returns a number below `count` for the next thread in a slot, which the caller has taken: each
/// in turn.
pub(super) fn next_id(slot: Slot, count: u8) -> u8 {
    let next = &region(slot.region()).next_ids[slot.index()];
    let number = next.load(Ordering::Relaxed); // Relaxed: the slot is passed on in an ordered way.
    next.store((number + 1) % count, Ordering::Relaxed);
    number
}

/// Returns the slots that may be in use, from the one with the number `from` on. There may be
/// others among them, whose memory has never been written to, but each has a page table.
fn open_from(from: Slot) -> impl Iterator<Item = Slot> {
    let regions = regions().filter(move |(number, _)| *number >= from.region());
    regions.flat_map(move |(number, region)| {
        let first = match number == from.region() {
            true => from.index(),
            false => 0,
        };
        let open = region.open_from(first);
        open.map(move |index| Slot::new(number, index))
    })
}

/// Calls `visit` with every slot that may be in use: all [open ones](next_open).
pub fn for_each_open(visit: impl FnMut(Slot)) {
    open_from(Slot(0)).for_each(visit);
}

/// Returns the slot with the lowest number from `from` on that may be in use. It may not be, with
/// memory that has never been written to, but it has a page table.
pub fn next_open(from: u32) -> Option<Slot> {
    open_from(Slot(from)).next()
}

/// Notes that the slots made so far are not in use and never will be, in the child of a fork that
/// has no runtime yet. Their addresses stay reserved: the stack of the thread that has forked may
/// be among them.
pub(crate) fn after_fork() {
    for (_, region) in regions() {
        for word in &region.open {
            word.store(0, Ordering::Relaxed); // Relaxed: as in `regions`.
        }
    }
}

/// Returns the slots of `class` that may ever have been used.
pub(super) fn created(class: SizeClass) -> impl Iterator<Item = Slot> {
    let regions = regions().filter(move |(_, region)| region.class == class);
    regions.flat_map(|(number, region)| {
        let created = region.created.load(Ordering::Relaxed); // Relaxed: as in `regions`.
        (0..created).map(move |index| Slot::new(number, index))
    })
}

/// Notes which code uses a slot from now on, if [`depth`](super::depth) may [ask](last_user).
#[inline]
pub(crate) fn note_user(slot: Slot, user: User) {
    if let Some(place) = region(slot.region()).users.get(slot.index()) {
        place.store(user as usize, Ordering::Relaxed); // Relaxed: statistics only.
    }
}

/// Returns the name of the code that the last user of a slot ran.
pub(super) fn last_user(slot: Slot) -> Option<&'static str> {
    let user = region(slot.region()).users.get(slot.index())?;
    let user = user.load(Ordering::Relaxed); // Relaxed: statistics only.
    // SAFETY: 0, or stored by `note_user`.
    let user = unsafe { core::mem::transmute::<usize, Option<User>>(user) };
    user.map(|name| name())
}

/// Returns whether guards are separate mappings, which the system limits.
pub(crate) fn guards_cost_mappings() -> bool {
    // Relaxed: set before the first slot, see `find_out`; or where either kind of guard will do.
    USE_MPROTECT.load(Ordering::Relaxed)
}

/// Finds out whether the kernel has guard markers. Called once, at start.
///
/// `PIRN_NO_GUARD_MARKERS` in the environment pretends that it has none, for tests.
pub fn find_out() {
    let hidden = environment::variable("PIRN_NO_GUARD_MARKERS").is_some();
    // SAFETY: a page of our own for the attempt.
    unsafe {
        let size = sys::page_size();
        if let Ok(page) = sys::map(size, 0) {
            let known = call!(libc::SYS_madvise, page, size, MADV_GUARD_INSTALL).is_ok();
            USE_MPROTECT.store(hidden || !known, Ordering::Relaxed); // Relaxed: see above.
            let _ = call!(libc::SYS_munmap, page, size);
        }
    }
}

/// Makes the guard of each slot inaccessible, and the slots open.
pub(super) fn install_guards(slots: &[Slot]) -> Result<(), Shortage> {
    for batch in slots.chunks(BATCH) {
        let guards = batch.iter().map(|slot| slot.base()..slot.bottom());
        // SAFETY: markers change nothing in memory that no thread may touch. One system call saves
        // a third of their cost.
        let done = || unsafe { advise_all(guards, MADV_GUARD_INSTALL) };
        if guards_cost_mappings() || !done() {
            batch.iter().try_for_each(|&slot| install_guard(slot))?;
        }
        for slot in batch {
            valgrind::created(slot.frames().end..slot.end());
            region(slot.region()).note_open(slot.index());
        }
    }
    Ok(())
}

/// Makes the guard of a slot inaccessible.
fn install_guard(slot: Slot) -> Result<(), Shortage> {
    let (start, len) = (slot.base(), slot.bottom() - slot.base());
    if !guards_cost_mappings() {
        // SAFETY: the slot's own guard.
        match unsafe { call!(libc::SYS_madvise, start, len, MADV_GUARD_INSTALL) } {
            // There are no markers in locked memory.
            // Relaxed: a thread that sees it late tries a marker first, as this one has.
            Err(Errno(libc::EINVAL)) => USE_MPROTECT.store(true, Ordering::Relaxed),
            result => return result.map(drop).map_err(Shortage::Guards),
        }
    }
    // SAFETY: the slot's own guard.
    let result = unsafe { call!(libc::SYS_mprotect, start, len, libc::PROT_NONE) };
    result.map(drop).map_err(Shortage::Mappings)
}

/// The maximum number of slots per system call.
pub(super) const BATCH: usize = 64;

/// Advises the kernel on at most [`BATCH`] ranges of slots with one system call, which Linux 6.14
/// allows a process for itself. Returns whether all was done.
///
/// # Safety
/// The advice does no harm to the owner of the ranges.
unsafe fn advise_all(ranges: impl Iterator<Item = Range<usize>>, advice: libc::c_int) -> bool {
    let mut vectors = [libc::iovec {
        iov_base: core::ptr::null_mut(),
        iov_len: 0,
    }; BATCH];
    let (mut count, mut bytes) = (0, 0);
    for (vector, range) in vectors.iter_mut().zip(ranges) {
        vector.iov_base = range.start as *mut core::ffi::c_void;
        vector.iov_len = range.len();
        count += 1;
        bytes += range.len();
    }
    if !valgrind::kernel_has(libc::SYS_process_madvise) {
        return false;
    }
    // SAFETY: the caller's contract.
    let done = unsafe {
        call!(
            libc::SYS_process_madvise,
            SELF,
            vectors.as_ptr(),
            count,
            advice,
            0
        )
    };
    done == Ok(bytes)
}

/// `PIDFD_SELF_THREAD_GROUP`, include/uapi/linux/pidfd.h: Linux 6.14.
const SELF: isize = -10001;

/// Advises the kernel on parts of at most [`BATCH`] free slots: [`REMOVE_GUARDS`], or
/// `MADV_DONTNEED`, after which they read as zero.
///
/// Uses one system call if possible, because each call interrupts the other cores to flush the
/// pages from their TLBs (batched since Linux 6.16).
///
/// # Safety
/// The slots are free, and the caller's alone.
pub(super) unsafe fn advise(
    ranges: impl Iterator<Item = Range<usize>> + Clone,
    advice: libc::c_int,
) {
    // SAFETY: the caller's contract.
    if unsafe { advise_all(ranges.clone(), advice) } {
        return;
    }
    for range in ranges {
        // SAFETY: the caller's contract.
        let _ = unsafe { call!(libc::SYS_madvise, range.start, range.len(), advice) };
    }
}

// From an address to the regions that it may be in, in one step. Regions lie where the kernel puts
// them, in no order. The address space is divided into parts of 1 GiB; each part has a list of the
// regions that overlap it, mostly one or two. No entry is ever taken out, as regions are never
// freed.
//
//   address >> 30      0      1    ...   n     n+1   ...  PARTS - 1
//                   +------+------+----+------+------+----+------+
//   LISTS           |      |      |    |  |   |  |   |    |      |
//                   +------+------+----+--|---+--|---+----+------+
//                                       entry   entry -> entry -> null
//                                     region 7  region 8  region 7

/// log2 of the bytes of a part: of the size of a region.
const PART_BITS: u32 = 30;
/// `mmap` gives no addresses beyond, unless asked to.
const PARTS: usize = arch::END_OF_PROGRAM >> PART_BITS;

struct RegionEntry {
    region: usize,
    next: *const RegionEntry,
}

/// 1 or 2 MiB of addresses, of which the pages with regions in them are ever touched.
static LISTS: [AtomicPtr<RegionEntry>; PARTS] =
    [const { AtomicPtr::new(core::ptr::null_mut()) }; PARTS];

/// Notes which addresses the region with this number has. Once per region.
fn enter(region: usize, addresses: Range<usize>) {
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
            // Release: pairs with the Acquire in `regions_at`. Relaxed on failure: a guess again.
            match list.compare_exchange_weak(first, entry, Ordering::Release, Ordering::Relaxed) {
                Ok(_) => break,
                Err(now) => first = now,
            }
        }
    }
}

/// Returns the numbers of the regions that overlap the part of the address space with `address`.
fn regions_at(address: usize) -> impl Iterator<Item = usize> {
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
