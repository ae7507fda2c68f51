//! Reserving, taking and freeing slots.
//!
//! `spawn` only *reserves* a slot; the first mount *takes* one. So a burst of short threads runs in
//! a few warm slots, and "no memory" is still an error of `spawn` and never of a mount: the pool
//! keeps `planned >= reserved + surplus`, where the surplus covers the slots that processors may
//! hold in their caches.
//!
//! ```text
//!   planned ──┬── fresh: address space only, no guard yet
//!             ├── free here (dirty: used since the last trim; clean: given back to the system)
//!             ├── in a processor's SlotCache (at most CACHE each, covered by the surplus)
//!             └── taken by a virtual thread
//! ```
//!
//! Memory: a free slot keeps the pages it has touched, so that they are warm for the next user.
//! [`Stacks::trim`], called when a carrier has been idle for a while, returns the deep pages of all
//! free slots and every page of those beyond [`KEEP`] to the system.

use super::region;
use super::shortage::Shortage;
use super::{GUARD, PAGE, SizeClass, Slot};
use crate::lock::Lock;
use crate::runtime::Runtime;
use crate::sanitizer::Ignored;
use crate::sys;
use core::sync::atomic::{AtomicBool, AtomicIsize, AtomicUsize, Ordering};

/// The maximum number of slots in a processor's cache.
pub(crate) const CACHE: usize = 64;
/// The number of slots moved between a processor and the pool at once.
const BATCH: usize = CACHE / 2;
/// The maximum number of slots planned at once, and of the bytes of address space that they take.
const EXTENT: usize = 1024;
const EXTENT_BYTES: usize = 256 << 20;
/// The memory that must be free for `spawn` to use new stacks, and how much each will use.
const MEMORY_FLOOR: u64 = 64 << 20;
const MEMORY_EACH: u64 = 4096;
/// Mappings reserved for the rest of the program (malloc, platform threads).
const OTHER_MAPPINGS: usize = 4096;
/// The number of free slots whose top pages survive a [`trim`](Stacks::trim).
const KEEP: usize = 1024;
/// Bytes at the top of a kept slot that survive a [`trim`](Stacks::trim).
const KEEP_TOP: usize = 4 * PAGE;

struct ClassPool {
    /// The number of slots that may still be reserved.
    available: AtomicIsize,
    /// Whether [`trim`](Stacks::trim) has anything to do.
    dirty: AtomicBool,
    slots: Lock<Slots>,
}

struct Slots {
    dirty: Vec<Slot>,
    clean: Vec<Slot>,
    fresh: Vec<Fresh>,
    planned: usize,
    /// The number of slots still to be planned that must not be reserved.
    surplus: usize,
    /// The region that is being cut up, and its next unplanned slot.
    region: Option<(usize, usize)>,
}

/// Slots of one region that have never been used.
struct Fresh {
    region: usize,
    next: usize,
    end: usize,
}

/// The number of slots whose guards are separate mappings, which the system limits.
static GUARDED: AtomicUsize = AtomicUsize::new(0);

/// The slots of one runtime, by size class.
pub(crate) struct Stacks([ClassPool; SizeClass::COUNT]);

impl Stacks {
    /// Returns empty pools. Up to `caches` processors may hold slots of the class `default` in
    /// their caches.
    pub(crate) fn new(default: SizeClass, caches: usize) -> Stacks {
        let class = |index| {
            let surplus = if index == default.index() {
                caches * CACHE
            } else {
                0
            };
            ClassPool::new(surplus)
        };
        Stacks(core::array::from_fn(class))
    }

    fn pool(&self, class: SizeClass) -> &ClassPool {
        &self.0[class.index()]
    }

    /// Reserves `count` slots of `class` for threads that are about to be spawned.
    pub(crate) fn reserve(&self, class: SizeClass, count: usize) -> Result<(), Shortage> {
        let pool = self.pool(class);
        let count = count as isize;
        // Relaxed: a counter; the slots themselves move under the lock.
        if pool.available.fetch_sub(count, Ordering::Relaxed) >= count {
            return Ok(());
        }
        pool.available.fetch_add(count, Ordering::Relaxed); // Relaxed: as above.
        let mut slots = pool.slots.lock();
        // Relaxed: as above; growth happens under the lock.
        while pool.available.fetch_sub(count, Ordering::Relaxed) < count {
            pool.available.fetch_add(count, Ordering::Relaxed);
            let created = slots.extend(class)?;
            pool.available
                .fetch_add(created as isize, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Releases a reservation. The slot, if one was taken for it, has been [`put`](Self::put)
    /// before.
    pub(crate) fn unreserve(&self, class: SizeClass, count: usize) {
        // Relaxed: as in `reserve`.
        self.pool(class)
            .available
            .fetch_add(count as isize, Ordering::Relaxed);
    }

    /// Takes a slot for one of the caller's reservations.
    pub(crate) fn take(&self, class: SizeClass) -> Slot {
        let mut slot = [Slot(0)];
        self.fill(class, &mut slot);
        slot[0]
    }

    /// Takes at least one slot.
    fn fill(&self, class: SizeClass, cache: &mut [Slot]) -> usize {
        let _ignored = Ignored::new();
        loop {
            let len = self.pool(class).slots.lock().fill(cache);
            if len > 0 {
                return len;
            }
            sys::os_yield(); // A trimmer holds it, for microseconds.
        }
    }

    /// Frees a slot.
    pub(crate) fn put(&self, slot: Slot) {
        self.put_all(&[slot]);
    }

    /// Frees slots of one class.
    fn put_all(&self, slots: &[Slot]) {
        let Some(first) = slots.first() else { return };
        let _ignored = Ignored::new();
        let pool = self.pool(first.class());
        pool.slots.lock().dirty.extend_from_slice(slots); // never allocates: see `extend`
        pool.dirty.store(true, Ordering::Relaxed); // Relaxed: a hint for `trim`.
    }

    /// Returns whether [`trim`](Self::trim) would have anything to do.
    pub(crate) fn wants_trim(&self) -> bool {
        // Relaxed: a hint.
        self.0.iter().any(|pool| pool.dirty.load(Ordering::Relaxed))
    }

    /// Returns the memory of free slots to the system, a few slots at a time. Returns whether there
    /// is more.
    pub(crate) fn trim(&self) -> bool {
        let mut more = false;
        for pool in &self.0 {
            if pool.dirty.load(Ordering::Relaxed) {
                more |= pool.trim_some();
            }
        }
        more
    }
}

impl ClassPool {
    fn new(surplus: usize) -> ClassPool {
        ClassPool {
            available: AtomicIsize::new(0),
            dirty: AtomicBool::new(false),
            slots: Lock::new(Slots {
                dirty: Vec::new(),
                clean: Vec::new(),
                fresh: Vec::new(),
                planned: 0,
                surplus,
                region: None,
            }),
        }
    }

    fn trim_some(&self) -> bool {
        let mut batch = [Slot(0); BATCH];
        let mut len = 0;
        let mut kept;
        {
            let mut slots = self.slots.lock();
            kept = slots.clean.len();
            while let Some(slot) = if len < BATCH { slots.dirty.pop() } else { None } {
                batch[len] = slot;
                len += 1;
            }
            if slots.dirty.is_empty() {
                self.dirty.store(false, Ordering::Relaxed); // Relaxed: a hint.
            }
        }
        // Outside the lock: spawning goes on meanwhile, and `take` waits for these slots if
        // necessary.
        let mut ranges = [const { 0..0 }; BATCH];
        for (range, slot) in ranges.iter_mut().zip(&batch[..len]) {
            kept += 1;
            let top = if kept > KEEP { 0 } else { KEEP_TOP };
            *range = slot.base() + GUARD..slot.end() - top;
        }
        region::give_back(&ranges[..len]);
        let mut slots = self.slots.lock();
        slots.clean.extend_from_slice(&batch[..len]);
        !slots.dirty.is_empty()
    }
}

impl Slots {
    /// Moves free slots to `cache`, warm ones first, until it is full or no more are left.
    fn fill(&mut self, cache: &mut [Slot]) -> usize {
        let mut len = 0;
        while len < cache.len()
            && let Some(slot) = self.dirty.pop().or_else(|| self.clean.pop())
        {
            cache[len] = slot;
            len += 1;
        }
        if len == 0 {
            len = self.open(cache);
        }
        len
    }

    /// Opens fresh slots for use.
    fn open(&mut self, cache: &mut [Slot]) -> usize {
        let Some(fresh) = self.fresh.last_mut() else {
            return 0;
        };
        let count = cache.len().min(fresh.end - fresh.next);
        for slot in &mut cache[..count] {
            *slot = region::slot(fresh.region, fresh.next);
            fresh.next += 1;
        }
        if fresh.next == fresh.end {
            self.fresh.pop();
        }
        if region::install_guards(&cache[..count]).is_err() {
            // There is no memory for a page table: the next page fault would fail as well.
            sys::fatal(&["no memory for a stack's guard page"]);
        }
        count
    }

    /// Plans more slots. Returns how many of them may be reserved.
    fn extend(&mut self, class: SizeClass) -> Result<usize, Shortage> {
        let untouched: usize = self.fresh.iter().map(|f| f.end - f.next).sum();
        let wanted = (EXTENT_BYTES / class.stack_bytes()).clamp(1, EXTENT);
        check_memory((untouched + wanted) as u64 * MEMORY_EACH)?;
        let (number, next) = match self.region {
            Some(at) => at,
            None => (region::reserve(class)?, 0),
        };
        self.region = Some((number, next));
        let capacity = region::region(number).capacity;
        let end = (next + wanted).min(capacity);
        let made = self.plan(number, next, end)?;
        let next = next + made;
        self.region = (next < capacity).then_some((number, next));
        self.planned += made;
        let held_back = made.min(self.surplus);
        self.surplus -= held_back;
        Ok(made - held_back)
    }

    /// Makes slots of a region available. Returns their number: fewer than requested, but at least
    /// one, if a step fails.
    fn plan(&mut self, region: usize, next: usize, end: usize) -> Result<usize, Shortage> {
        let planned = self.planned + (end - next);
        // Room for every existing slot in either list, so that freeing a slot never allocates.
        for list in [&mut self.dirty, &mut self.clean] {
            list.try_reserve(planned - list.len().min(planned))
                .map_err(|_| Shortage::Lists)?;
        }
        if !region::guards_cost_mappings() {
            self.fresh.try_reserve(1).map_err(|_| Shortage::Lists)?;
            self.fresh.push(Fresh { region, next, end });
            return Ok(end - next);
        }
        // Relaxed: a counter over all classes; an approximate value suffices.
        let all = GUARDED.load(Ordering::Relaxed) + (end - next);
        if 2 * all + OTHER_MAPPINGS > mappings_allowed() {
            return Err(Shortage::MappingsToSpare);
        }
        // Each may fail, and that must be an error of `spawn`, so it is done now.
        for index in next..end {
            match region::install_guards(&[region::slot(region, index)]) {
                Ok(()) => self.clean.push(region::slot(region, index)),
                Err(e) if index == next => return Err(e),
                Err(_) => return Ok(index - next),
            }
            GUARDED.fetch_add(1, Ordering::Relaxed); // Relaxed: as above.
        }
        Ok(end - next)
    }
}

/// A processor's own slots of the default class. Only its owner touches it.
pub(crate) struct SlotCache {
    slots: [Slot; CACHE],
    len: usize,
}

impl SlotCache {
    pub(crate) const fn new() -> SlotCache {
        SlotCache {
            slots: [Slot(0); CACHE],
            len: 0,
        }
    }

    /// Returns whether the next [`take`](Self::take) must use the pool.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Takes a slot for one of the caller's reservations.
    #[inline]
    pub(crate) fn take(&mut self, runtime: &Runtime) -> Slot {
        if self.len == 0 {
            self.refill(runtime);
        }
        self.len -= 1;
        self.slots[self.len]
    }

    /// Frees a slot.
    #[inline]
    pub(crate) fn put(&mut self, stacks: &Stacks, slot: Slot) {
        if self.len == CACHE {
            self.flush(stacks, CACHE - BATCH);
        }
        self.slots[self.len] = slot;
        self.len += 1;
    }

    #[cold]
    fn refill(&mut self, runtime: &Runtime) {
        let class = runtime.settings.default_class;
        self.len = runtime.stacks.fill(class, &mut self.slots[..BATCH]);
    }

    /// Moves the coldest slots to the pool until `keep` are left.
    #[cold]
    pub(crate) fn flush(&mut self, stacks: &Stacks, keep: usize) {
        if self.len <= keep {
            return;
        }
        let _ignored = Ignored::new();
        let surplus = self.len - keep;
        stacks.put_all(&self.slots[..surplus]);
        self.slots.copy_within(surplus..self.len, 0);
        self.len = keep;
    }
}

/// Refuses new stacks if the machine, or the container, is nearly out of memory: touching them
/// would trigger the OOM killer, which would end all threads.
fn check_memory(promised: u64) -> Result<(), Shortage> {
    let left = memory_left();
    if left >= MEMORY_FLOOR + promised {
        return Ok(());
    }
    Err(Shortage::of_memory(left, promised))
}

/// Returns the sysctl `vm.max_map_count`.
fn mappings_allowed() -> usize {
    let mut buffer = [0; 64];
    read_file(c"/proc/sys/vm/max_map_count", &mut buffer)
        .and_then(|text| text.trim().parse().ok())
        .unwrap_or(65530)
}

fn memory_left() -> u64 {
    let mut buffer = [0u8; 4096];
    let machine = read_file(c"/proc/meminfo", &mut buffer)
        .and_then(|text| {
            text.lines().find_map(|l| {
                l.strip_prefix("MemAvailable:")?
                    .trim()
                    .strip_suffix(" kB")?
                    .trim()
                    .parse::<u64>()
                    .ok()
            })
        })
        .map_or(u64::MAX, |kb| kb << 10);
    let cgroup = [
        (
            c"/sys/fs/cgroup/memory.max",
            c"/sys/fs/cgroup/memory.current",
        ),
        (
            c"/sys/fs/cgroup/memory/memory.limit_in_bytes",
            c"/sys/fs/cgroup/memory/memory.usage_in_bytes",
        ),
    ]
    .into_iter()
    .filter_map(|(limit, usage)| {
        let limit = read_file(limit, &mut buffer)?.trim().parse::<u64>().ok()?;
        let usage = read_file(usage, &mut buffer)?.trim().parse::<u64>().ok()?;
        Some(limit.saturating_sub(usage))
    })
    .min();
    machine.min(cgroup.unwrap_or(u64::MAX))
}

fn read_file<'a>(path: &core::ffi::CStr, buffer: &'a mut [u8]) -> Option<&'a str> {
    core::str::from_utf8(sys::read_file(path, buffer).ok()?).ok()
}
