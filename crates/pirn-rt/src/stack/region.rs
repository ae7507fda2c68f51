//! Reserving address space and cutting it into slots.
//!
//! A region is one `mmap` of up to a gigabyte, reserved but not committed (`MAP_NORESERVE`), and
//! without huge pages: one under a 256 KiB slot would cost 2 MiB. The guard at the bottom of a slot
//! is a page-table marker (`MADV_GUARD_INSTALL`, Linux 6.13) that costs no VMA. If the kernel does
//! not support it, or refuses it because the program has locked its memory (`mlockall`), `mprotect`
//! splits the mapping into two VMAs per slot, and `vm.max_map_count` becomes the limit.

use super::index;
use super::shortage::Shortage;
use super::{PAGE, SizeClass, Slot};
use crate::environment;
use crate::glibc::tls;
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
/// `MADV_GUARD_REMOVE`, from the same file.
const MADV_GUARD_REMOVE: i32 = 103;

/// One reserved range of addresses.
pub(crate) struct Region {
    pub(crate) base: usize,
    pub(crate) class: SizeClass,
    /// The bytes from slot to slot.
    pub(crate) stride: usize,
    /// The number of slots it has room for.
    pub(crate) capacity: usize,
    /// The index from which on no slot has been used.
    created: AtomicUsize,
    /// The slots that have a guard, one bit for each. Others have no memory.
    open: [AtomicU64; MAX_SLOTS / 64],
    /// For each slot of the class [`ROOMY`](SizeClass::ROOMY) its last [`User`], or 0; empty for
    /// other classes.
    users: Vec<AtomicUsize>,
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

/// Where readers outside of the process find what.
pub const LAYOUT: [(&str, usize); 5] = [
    ("regions.most", MAX_REGIONS),
    ("region.base", offset_of!(Region, base)),
    ("region.stride", offset_of!(Region, stride)),
    ("region.capacity", offset_of!(Region, capacity)),
    ("slot.tp", PAGE + tls::HEAD), // from the end of a slot down
];

/// Returns the addresses of the regions' addresses, and of their number.
pub const fn tables() -> [*const (); 2] {
    [
        (&raw const REGIONS).cast(),
        (&raw const REGION_COUNT).cast(),
    ]
}

/// Returns the region of a slot.
pub(crate) fn region_of(slot: Slot) -> &'static Region {
    // Acquire: pairs with the Release in `reserve`. Regions are never freed.
    let region = REGIONS[slot.region()].load(Ordering::Acquire);
    // SAFETY: slot numbers come from `Region::slot` only, after the region was published.
    unsafe { &*region }
}

/// Returns the lowest address of a slot.
pub(crate) fn slot_base(slot: Slot) -> usize {
    let region = region_of(slot);
    region.base + slot.index() * region.stride
}

/// Returns one past the highest address of a slot.
pub(crate) fn slot_end(slot: Slot) -> usize {
    let region = region_of(slot);
    region.base + (slot.index() + 1) * region.stride
}

/// Reserves a region for at most `most` slots of `class`. Returns its number.
pub(crate) fn reserve(class: SizeClass, most: usize) -> Result<usize, Shortage> {
    let stride = class.slot_bytes();
    let bytes = valgrind::largest_mapping(REGION_BYTES);
    let mut capacity = (bytes / stride).clamp(1, MAX_SLOTS.min(most));
    loop {
        match map(capacity * stride) {
            Ok(base) => {
                let users = if class == SizeClass::ROOMY {
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
                    next_ids: [const { AtomicU8::new(0) }; _],
                    users: (0..users).map(|_| AtomicUsize::new(0)).collect(),
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
        REGION_COUNT.fetch_sub(1, Ordering::Relaxed); // Relaxed: as above.
        return Err(Shortage::Regions);
    }
    let addresses = region.base..region.base + region.capacity * region.stride;
    valgrind::reserved(addresses.clone());
    // Release: pairs with the Acquire in `region_of`.
    REGIONS[number].store(Box::into_raw(Box::new(region)), Ordering::Release);
    index::enter(number, addresses);
    Ok(number)
}

/// Returns the slot at `index` of a region.
pub(crate) fn slot(region: usize, index: usize) -> Slot {
    Slot((region << SLOT_BITS | index) as u32)
}

/// Returns the region with this number.
pub(crate) fn region(number: usize) -> &'static Region {
    region_of(slot(number, 0))
}

/// Returns all regions, each with its number.
fn regions() -> impl Iterator<Item = (usize, &'static Region)> {
    // Relaxed: a caller that asks about a slot has learnt of it in an ordered way. Acquire: as in
    // `region_of`; the number is allocated before the pointer is stored.
    let count = REGION_COUNT.load(Ordering::Relaxed).min(MAX_REGIONS);
    // SAFETY: as in `region_of`.
    let published = |number: usize| unsafe { REGIONS[number].load(Ordering::Acquire).as_ref() };
    (0..count).filter_map(move |number| Some((number, published(number)?)))
}

/// Returns all regions.
pub(super) fn all() -> impl Iterator<Item = &'static Region> {
    regions().map(|(_, region)| region)
}

impl Region {
    /// Returns the bytes of its addresses.
    pub(super) fn bytes(&self) -> usize {
        self.capacity * self.stride
    }

    /// Returns the bytes of the data about it.
    pub(super) fn data_bytes(&self) -> usize {
        size_of::<Region>() + self.users.capacity() * size_of::<AtomicUsize>()
    }
}

/// Returns the slot that contains an address.
pub fn slot_at(address: usize) -> Option<Slot> {
    index::regions_at(address).find_map(|number| {
        let region = region(number);
        let index = address.checked_sub(region.base)? / region.stride;
        // Relaxed: as in `regions`.
        (index < region.created.load(Ordering::Relaxed)).then(|| slot(number, index))
    })
}

/// Returns a number below `count` for the next thread in a slot, which the caller has taken: each
/// in turn.
pub(super) fn next_id(slot: Slot, count: u8) -> u8 {
    let next = &region_of(slot).next_ids[slot.index()];
    let number = next.load(Ordering::Relaxed); // Relaxed: the slot is passed on in an ordered way.
    next.store((number + 1) % count, Ordering::Relaxed);
    number
}

/// Returns whether there is a slot with this number.
pub fn exists(slot: Slot) -> bool {
    // Relaxed, Acquire: as in `regions`.
    let regions = REGION_COUNT.load(Ordering::Relaxed).min(MAX_REGIONS);
    // SAFETY: as in `region_of`.
    let region = (slot.region() < regions)
        .then(|| unsafe { REGIONS[slot.region()].load(Ordering::Acquire).as_ref() });
    region
        .flatten()
        .is_some_and(|region| slot.index() < region.created.load(Ordering::Relaxed))
}

/// Calls `visit` with every slot that may be in use. There may be others among them, whose memory
/// has never been written to, but none that has no page table.
pub fn for_each_open(mut visit: impl FnMut(Slot)) {
    for (number, region) in regions() {
        for (word, bits) in region.open.iter().enumerate() {
            let mut bits = bits.load(Ordering::Relaxed); // Relaxed: as in `regions`.
            while bits != 0 {
                visit(slot(number, word * 64 + bits.trailing_zeros() as usize));
                bits &= bits - 1;
            }
        }
    }
}

/// Notes that no slot so far is in use or will be, in the child of a fork that has no runtime yet.
/// Their addresses stay theirs: the stack of the thread that has forked may be among them.
pub fn after_fork() {
    for (_, region) in regions() {
        for word in &region.open {
            word.store(0, Ordering::Relaxed); // Relaxed: as in `regions`.
        }
    }
}

/// Returns the open slot with the lowest number that is at least `from`.
pub fn next_open(from: u32) -> Option<Slot> {
    let from = Slot(from);
    let later = regions().filter(|(number, _)| *number >= from.region());
    later.into_iter().find_map(|(number, region)| {
        let first = match number == from.region() {
            true => from.index(),
            false => 0,
        };
        let open = |index: &usize| {
            let bits = region.open[index / 64].load(Ordering::Relaxed); // Relaxed: as in `regions`.
            bits & 1 << (index % 64) != 0
        };
        let index = (first..region.capacity).find(open);
        index.map(|index| slot(number, index))
    })
}

/// Notes that a free slot is closed: it needs a [guard](install_guards) before it is used.
pub(super) fn note_closed(slot: Slot) {
    let (word, bit) = open_bit(slot);
    word.fetch_and(!bit, Ordering::Relaxed); // Relaxed: as in `regions`.
}

/// Returns the place of a slot in [`Region::open`].
fn open_bit(slot: Slot) -> (&'static AtomicU64, u64) {
    let index = slot.index();
    (&region_of(slot).open[index / 64], 1 << (index % 64))
}

/// Returns the slots of `class` that may ever have been used.
pub(super) fn created(class: SizeClass) -> impl Iterator<Item = Slot> {
    let regions = regions().filter(move |(_, region)| region.class == class);
    regions.flat_map(|(number, region)| {
        let created = region.created.load(Ordering::Relaxed); // Relaxed: as in `regions`.
        (0..created).map(move |index| slot(number, index))
    })
}

/// Notes who uses a slot from now on, if anybody is going to [ask](last_user).
#[inline]
pub(crate) fn note_user(slot: Slot, user: User) {
    if let Some(place) = region_of(slot).users.get(slot.index()) {
        place.store(user as usize, Ordering::Relaxed); // Relaxed: for people to read.
    }
}

/// Returns the name of the code that the last user of a slot ran.
pub(super) fn last_user(slot: Slot) -> Option<&'static str> {
    let user = region_of(slot).users.get(slot.index())?;
    let user = user.load(Ordering::Relaxed); // Relaxed: as above.
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
        if let Ok(page) = sys::map(PAGE, 0) {
            let known = call!(libc::SYS_madvise, page, PAGE, MADV_GUARD_INSTALL).is_ok();
            USE_MPROTECT.store(hidden || !known, Ordering::Relaxed); // Relaxed: see above.
            let _ = call!(libc::SYS_munmap, page, PAGE);
        }
    }
}

/// Makes the guard of each slot inaccessible.
pub(crate) fn install_guards(slots: &[Slot]) -> Result<(), Shortage> {
    for batch in slots.chunks(BATCH) {
        if guards_cost_mappings() || !install_batch(batch) {
            batch.iter().try_for_each(|&slot| install_guard(slot))?;
        }
        batch.iter().for_each(|&slot| count_created(slot));
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
            Err(Errno(libc::EINVAL)) => USE_MPROTECT.store(true, Ordering::Relaxed), // As above.
            result => return result.map(drop).map_err(Shortage::Guards),
        }
    }
    // SAFETY: as above.
    let result = unsafe { call!(libc::SYS_mprotect, start, len, libc::PROT_NONE) };
    result.map(drop).map_err(Shortage::Mappings)
}

/// The maximum number of slots per system call.
pub(crate) const BATCH: usize = 64;

/// Installs markers with one system call, which saves a third of their cost.
fn install_batch(slots: &[Slot]) -> bool {
    let guards = slots.iter().map(|slot| slot.base()..slot.bottom());
    // SAFETY: markers change nothing in memory that nobody may touch.
    unsafe { advise_all(guards, MADV_GUARD_INSTALL) }
}

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

/// Records that a slot is complete.
fn count_created(slot: Slot) {
    valgrind::created(slot.frames().end..slot.end());
    let (word, bit) = open_bit(slot);
    word.fetch_or(bit, Ordering::Relaxed); // Relaxed: as in `regions`.
    region_of(slot)
        .created
        .fetch_max(slot.index() + 1, Ordering::Relaxed); // Relaxed: as in `regions`.
}

/// Removes the guard markers in parts of free slots, at most [`BATCH`] of them. Their slots need
/// [new ones](install_guards) before they are used.
///
/// # Safety
/// The slots are free, and the caller's alone.
pub(super) unsafe fn remove_guards(ranges: impl Iterator<Item = Range<usize>> + Clone) {
    // SAFETY: the caller's contract.
    unsafe { advise(ranges, MADV_GUARD_REMOVE) };
}

/// Asks the kernel to write the memory of parts of at most [`BATCH`] slots to swap, from where it
/// comes back when it is touched.
pub(crate) fn page_out(ranges: impl Iterator<Item = Range<usize>> + Clone) {
    // SAFETY: the memory keeps what it holds, whoever owns it.
    unsafe { advise(ranges, libc::MADV_PAGEOUT) };
}

/// Returns the memory of parts of at most [`BATCH`] free slots to the system; they read as zero
/// afterwards.
///
/// # Safety
/// The slots are free, and the caller's alone.
pub(super) unsafe fn give_back(ranges: impl Iterator<Item = Range<usize>> + Clone) {
    // SAFETY: the caller's contract.
    unsafe { advise(ranges, libc::MADV_DONTNEED) };
}

/// Advises the kernel on parts of slots.
///
/// Uses one system call if possible, because each call interrupts the other cores to flush the
/// pages from their TLBs (batched since Linux 6.16).
///
/// # Safety
/// As for [`advise_all`].
unsafe fn advise(ranges: impl Iterator<Item = Range<usize>> + Clone, advice: libc::c_int) {
    // SAFETY: the caller's contract.
    if unsafe { advise_all(ranges.clone(), advice) } {
        return;
    }
    for range in ranges {
        // SAFETY: as above.
        let _ = unsafe { call!(libc::SYS_madvise, range.start, range.len(), advice) };
    }
}
