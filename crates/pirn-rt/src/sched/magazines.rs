//! Recycled memory for virtual threads' cells.
//!
//! A thread is usually spawned on one carrier and ends on another. If its cell were freed there, it
//! would go back to the malloc arena that it came from, under a lock for which both carriers
//! contend: a burst of short threads spent most of its time there. So ended cells are kept, by
//! size, in magazines as in Bonwick and Adams' "Magazines and Vmem" (USENIX 2001):
//!
//! ```text
//!   processor:  current (up to FULL cells)  spare (none or FULL)
//!                      |  full, and there is a spare    ^  both empty
//!                      v                                |
//!   depot:      full magazines                              -> malloc, when none is left
//! ```
//!
//! Threads without a processor share one pair of magazines. Cells that are too large or too
//! strictly aligned are allocated and freed by malloc directly.

use super::carrier::carrier;
use crate::lock::Lock;
use crate::no_suspend::NoSuspend;
use crate::sanitizer::Ignored;
use core::alloc::Layout;
use core::ptr::{self, NonNull};
use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::alloc::{alloc, dealloc};

/// The distance between two cell sizes, and the alignment of all cells: malloc's own.
const GRAIN: usize = 16;
/// malloc uses one word of each chunk itself: a size of `n * GRAIN + REST` fills a chunk.
const REST: usize = 8;
/// The number of cell sizes, from 24 to 520 bytes.
const CLASSES: usize = 32;
/// The number of cells in a full magazine.
const FULL: usize = 64;

/// The start of an unused cell.
struct FreeCell {
    /// Next in the magazine.
    next: *mut FreeCell,
    /// In the first cell of a full magazine in the depot: the next magazine there.
    next_magazine: *mut FreeCell,
}

#[derive(Clone, Copy)]
struct Magazine {
    first: *mut FreeCell,
    len: usize,
}

const EMPTY: Magazine = Magazine {
    first: ptr::null_mut(),
    len: 0,
};

/// Two magazines per class: a processor's, for its holder alone, or the shared ones.
pub(crate) struct Magazines {
    current: [Magazine; CLASSES],
    spare: [Magazine; CLASSES],
}

// SAFETY: the magazines own their cells.
unsafe impl Send for Magazines {}

struct Depot(*mut FreeCell);
// SAFETY: the depot owns its cells.
unsafe impl Send for Depot {}

static DEPOT: [Lock<Depot>; CLASSES] = [const { Lock::new(Depot(ptr::null_mut())) }; CLASSES];

/// Returns the smallest class whose cells have room for `layout`.
#[inline(always)]
fn class_of(layout: Layout) -> Option<usize> {
    let class = layout.size().saturating_sub(REST + 1) / GRAIN;
    (class < CLASSES && layout.align() <= GRAIN).then_some(class)
}

/// Returns the layout with which every cell of a class is allocated and freed.
#[inline(always)]
const fn cell_layout(class: usize) -> Layout {
    match Layout::from_size_align((class + 1) * GRAIN + REST, GRAIN) {
        Ok(layout) => layout,
        Err(_) => unreachable!(),
    }
}

/// Bytes of all cells that there are, in use or not, with malloc's own word. The numbers may wrap;
/// their sum does not. Several, so that carriers that spawn do not contend.
static BYTES: [CellBytes; 8] = [const { CellBytes(AtomicUsize::new(0)) }; 8];

#[repr(align(64))]
struct CellBytes(AtomicUsize);

/// Counts a cell that has been allocated by malloc, or is about to be freed.
fn count(layout: Layout, allocated: bool) {
    let section = NoSuspend::new();
    let processor = carrier(&section).and_then(|carrier| carrier.processor());
    let place = &BYTES[processor.map_or(0, |processor| processor.index) % BYTES.len()].0;
    let bytes = (layout.size() + REST).next_multiple_of(GRAIN);
    // Relaxed: statistics only.
    match allocated {
        true => place.fetch_add(bytes, Relaxed),
        false => place.fetch_sub(bytes, Relaxed),
    };
}

/// Returns the bytes of all cells, in use or not.
#[inline]
pub fn bytes() -> usize {
    let places = BYTES.iter().map(|place| place.0.load(Relaxed)); // Relaxed: statistics only.
    places.fold(0, usize::wrapping_add)
}

/// The cache of threads without a processor.
static SHARED: Lock<Magazines> = Lock::new(Magazines::new());

/// Forgets all cells, in the child of a fork: threads of the parent may have held the locks.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe {
        SHARED.renew(Magazines::new());
        DEPOT
            .iter()
            .for_each(|depot| depot.renew(Depot(ptr::null_mut())));
    }
    for place in &BYTES {
        place.0.store(0, Relaxed); // Relaxed: there is one thread.
    }
}

/// Calls `f` with the cache of the processor that the running thread's carrier holds, or with the
/// shared one.
fn with_cache<R>(f: impl FnOnce(&mut Magazines) -> R) -> R {
    let section = NoSuspend::new();
    match carrier(&section).and_then(|carrier| carrier.processor()) {
        // SAFETY: `f` only takes or returns a cell.
        Some(processor) => f(unsafe { processor.magazines() }),
        None => f(&mut SHARED.lock()),
    }
}

/// Returns memory for a cell, or `None` without memory.
#[inline]
pub(crate) fn allocate(layout: Layout) -> Option<NonNull<u8>> {
    match class_of(layout) {
        // SAFETY: not empty, since a cell holds a `Core`.
        None => unsafe { take_from_malloc(layout) },
        Some(class) => with_cache(|cache| cache.take(class)).or_else(|| {
            // SAFETY: no class is empty.
            unsafe { take_from_malloc(cell_layout(class)) }
        }),
    }
}

/// Allocates a cell, in a section of the runtime. A platform thread that a handler of the program
/// stopped in malloc would have the arena's lock: threads that allocate under a lock of the runtime
/// would wait for it, and others for these, until the handler returns. The handler of a garbage
/// collector waits for all of them to stop.
///
/// # Safety
/// The layout is not empty.
unsafe fn take_from_malloc(layout: Layout) -> Option<NonNull<u8>> {
    let (_section, _ignored) = (NoSuspend::new(), Ignored::new());
    count(layout, true);
    // SAFETY: the caller's contract.
    NonNull::new(unsafe { alloc(layout) })
}

/// Frees a cell.
///
/// # Safety
/// `cell` came from [`allocate`] with the same layout, and is not used any more.
pub(crate) unsafe fn free(cell: NonNull<u8>, layout: Layout) {
    // SAFETY: by the caller's contract the memory is unused, and `allocate` sorted the same layout
    // into the same class, or took it from `alloc` if no class has that.
    unsafe {
        match class_of(layout) {
            Some(class) => with_cache(|cache| cache.put(class, cell.cast())),
            None => {
                let (_section, _ignored) = (NoSuspend::new(), Ignored::new()); // As in `take_from_malloc`.
                count(layout, false);
                dealloc(cell.as_ptr(), layout);
            }
        }
    }
}

impl Magazines {
    #[inline]
    pub(crate) const fn new() -> Magazines {
        Magazines {
            current: [EMPTY; CLASSES],
            spare: [EMPTY; CLASSES],
        }
    }

    fn take(&mut self, class: usize) -> Option<NonNull<u8>> {
        let (current, spare) = (&mut self.current[class], &mut self.spare[class]);
        if current.len == 0 {
            *current = core::mem::replace(spare, EMPTY);
            if current.len == 0 {
                *current = take_magazine(class)?;
            }
        }
        let cell = NonNull::new(current.first)?;
        // SAFETY: the magazines own their cells, which start with a `FreeCell`.
        current.first = unsafe { cell.as_ref() }.next;
        current.len -= 1;
        Some(cell.cast())
    }

    /// # Safety
    /// `cell` is unused memory of this class.
    unsafe fn put(&mut self, class: usize, cell: NonNull<FreeCell>) {
        let (current, spare) = (&mut self.current[class], &mut self.spare[class]);
        if current.len == FULL {
            let full = core::mem::replace(spare, core::mem::replace(current, EMPTY));
            if full.len > 0 {
                put_magazine(class, full);
            }
        }
        let free = FreeCell {
            next: current.first,
            next_magazine: ptr::null_mut(),
        };
        // SAFETY: the caller's contract; two words fit in the smallest cell.
        unsafe { cell.write(free) };
        current.first = cell.as_ptr();
        current.len += 1;
    }
}

#[cold]
fn take_magazine(class: usize) -> Option<Magazine> {
    let mut depot = DEPOT[class].lock();
    let first = NonNull::new(depot.0)?;
    // SAFETY: the depot owns its cells, which start with a `FreeCell`.
    depot.0 = unsafe { first.as_ref() }.next_magazine;
    Some(Magazine {
        first: first.as_ptr(),
        len: FULL,
    })
}

#[cold]
fn put_magazine(class: usize, magazine: Magazine) {
    let mut depot = DEPOT[class].lock();
    // SAFETY: the caller's cells; a full magazine has a first cell.
    unsafe { (*magazine.first).next_magazine = depot.0 };
    depot.0 = magazine.first;
}

/// Frees the cells in the depot. For carriers that have no other work.
pub(crate) fn trim() {
    for class in 0..CLASSES {
        while let Some(magazine) = take_magazine(class) {
            let mut next = magazine.first;
            while let Some(cell) = NonNull::new(next) {
                // SAFETY: the magazines own their cells; `allocate` got them with this layout.
                unsafe {
                    next = cell.as_ref().next;
                    count(cell_layout(class), false);
                    dealloc(cell.as_ptr().cast(), cell_layout(class));
                }
            }
        }
    }
}

const _: () = assert!(size_of::<FreeCell>() <= cell_layout(0).size());
