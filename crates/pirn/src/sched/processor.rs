//! A processor: the right to run virtual threads, and what comes with it.
//!
//! There are as many processors as the parallelism asked for; a carrier runs virtual threads only
//! while it holds one. What a processor owns is touched by its holder alone, except the
//! run queue (others steal from it) and the counters that others read.

use super::local_queue::LocalQueue;
use super::spare::Spare;
use super::{default_class, injector, os_thread};
use crate::stack::Slot;
use crate::stack::pool::{self, SlotCache};
use crate::sys;
use crate::vthread::Core;
use crate::vthread::ids::Ids;
use crate::vthread::magazines::Magazines;
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicU32, Ordering};
use std::io;

/// Every so many switches the carrier looks at everything that is not its own queue: the injector,
/// due timers, ready descriptors. Go uses the same number.
const MAINTENANCE_EVERY: u32 = 61;
/// The least time between two looks for events while there are threads to run.
const LOOK_EVERY_NS: u64 = 20_000;
/// Reservations moved between a processor and the pool at once.
const RESERVATIONS: u32 = 64;

/// See the module's documentation.
pub(crate) struct Processor {
    /// Its place among the processors.
    pub(crate) index: usize,
    pub(crate) queue: LocalQueue<Core>,
    /// Counts switches: a value that stands still means one thread has been running all the time.
    pub(crate) tick: AtomicU32,
    slots: UnsafeCell<SlotCache>,
    /// Memory of ended threads, for new ones.
    magazines: UnsafeCell<Magazines>,
    /// Ids for threads to be spawned here.
    ids: Ids,
    /// Slots reserved in the pool for threads to be spawned here.
    reservations: Cell<u32>,
    /// When its holder last looked for events in the course of maintenance.
    looked: Cell<u64>,
    /// The next thread to run, if it has been taken off the queue already.
    next: Cell<Option<NonNull<Core>>>,
    /// The platform thread that holds it, for the monitor to look at; 0 while it is on the idle
    /// list.
    pub(crate) holder: AtomicU32,
    /// For one that is used only while the regular ones are stuck.
    pub(crate) spare: Option<Spare>,
}

// SAFETY: the cells are touched by the holder only, as every function that touches them demands.
unsafe impl Sync for Processor {}

impl Processor {
    pub(crate) fn new(index: usize, spare: Option<Spare>) -> Processor {
        Processor {
            index,
            queue: LocalQueue::new(),
            tick: AtomicU32::new(0),
            slots: UnsafeCell::new(SlotCache::new()),
            magazines: UnsafeCell::new(Magazines::new()),
            ids: Ids::new(),
            reservations: Cell::new(0),
            looked: Cell::new(0),
            next: Cell::new(None),
            holder: AtomicU32::new(0),
            spare,
        }
    }

    /// Ids of its own.
    ///
    /// # Safety
    /// The caller's carrier holds the processor, and does not unmount as long as the reference is
    /// used.
    pub(crate) unsafe fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Notes that the calling platform thread holds it from now on, and counts that as a switch.
    ///
    /// # Safety
    /// It does.
    pub(crate) unsafe fn held_here(&self) {
        self.holder.store(os_thread::id(), Ordering::Relaxed); // Relaxed: a hint.
        // SAFETY: the caller's contract.
        unsafe { self.count() };
    }

    /// Counts a switch. Returns the new count.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    unsafe fn count(&self) -> u32 {
        // Relaxed: written by the holder only, read by others as a hint.
        let tick = self.tick.load(Ordering::Relaxed).wrapping_add(1);
        self.tick.store(tick, Ordering::Relaxed);
        tick
    }

    /// The thread that a thread about to leave may hand over to directly; none when the carrier's
    /// own loop is to decide.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn next_to_hand_over(&self) -> Option<NonNull<Core>> {
        // SAFETY: the caller's contract.
        unsafe {
            if self.count().is_multiple_of(MAINTENANCE_EVERY) {
                return None;
            }
            let next = self.queue.pop()?;
            // A new thread needs a stack. Fetching some from the pool takes a kilobyte of stack
            // itself, and would make the thread that leaves touch another page: the carrier's own
            // loop is to do it.
            if next.as_ref().slot().is_none() && (*self.slots.get()).is_empty() {
                self.next.set(Some(next));
                return None;
            }
            Some(next)
        }
    }

    /// The first thread in the queue.
    ///
    /// # Safety
    /// The caller holds this processor.
    pub(crate) unsafe fn pop(&self) -> Option<NonNull<Core>> {
        // SAFETY: the caller's contract.
        self.next.take().or_else(|| unsafe { self.queue.pop() })
    }

    /// Whether it is time to look beyond the own queue: also when that was why
    /// [`next_to_hand_over`](Self::next_to_hand_over) gave nothing. Counts a switch.
    ///
    /// # Safety
    /// The caller holds this processor.
    pub(crate) unsafe fn maintenance_due(&self) -> bool {
        let due = self
            .tick
            .load(Ordering::Relaxed)
            .is_multiple_of(MAINTENANCE_EVERY); // Relaxed: our own.
        // SAFETY: the caller's contract.
        unsafe { self.count() };
        due
    }

    /// Whether the holder has not looked for events for a while. Short switches come round to
    /// maintenance every two microseconds, and the look is a system call.
    ///
    /// # Safety
    /// The caller holds this processor.
    pub(crate) unsafe fn look_due(&self) -> bool {
        let now = sys::now();
        let due = now - self.looked.get() >= LOOK_EVERY_NS;
        if due {
            self.looked.set(now);
        }
        due
    }

    /// Puts a runnable thread at the end of the queue; when that is full, its older half moves to
    /// the injector.
    ///
    /// # Safety
    /// The caller holds this processor and owns the right to run `thread`.
    #[inline]
    pub(crate) unsafe fn enqueue(&self, thread: NonNull<Core>) {
        // SAFETY: the caller's contract.
        if let Err(thread) = unsafe { self.queue.push_back(thread) } {
            // SAFETY: the same.
            unsafe { self.overflow(thread) };
        }
    }

    #[cold]
    unsafe fn overflow(&self, thread: NonNull<Core>) {
        let mut batch = injector::Batch::new();
        // SAFETY: the caller holds this processor; what comes out is ours to pass on.
        unsafe { self.queue.take_half(|t| batch.push(t)) };
        batch.push(thread);
        injector::push_batch(batch);
    }

    /// Moves all of its threads to the injector, and gives back the stacks and reservations it has
    /// in store: it may not be held again for long.
    ///
    /// # Safety
    /// The caller holds this processor.
    pub(crate) unsafe fn empty(&self) {
        let mut batch = injector::Batch::new();
        // SAFETY: the caller's contract; what comes out is ours to pass on.
        while let Some(thread) = unsafe { self.pop() } {
            batch.push(thread);
        }
        injector::push_batch(batch);
        // SAFETY: the holder's alone.
        unsafe { (*self.slots.get()).flush(0) };
        pool::unreserve(default_class(), self.reservations.take() as usize);
    }

    /// # Safety
    /// The caller holds this processor, and a reservation in the default class.
    #[inline]
    pub(crate) unsafe fn take_slot(&self) -> Slot {
        // SAFETY: the holder's alone.
        unsafe { (*self.slots.get()).take(default_class()) }
    }

    /// Gives back a slot of the default class, and the reservation it was taken for.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn put_slot(&self, slot: Slot) {
        // SAFETY: the holder's alone.
        unsafe { (*self.slots.get()).put(slot) };
        let reservations = self.reservations.get() + 1;
        self.reservations.set(reservations);
        if reservations > 2 * RESERVATIONS {
            pool::unreserve(default_class(), RESERVATIONS as usize);
            self.reservations.set(reservations - RESERVATIONS);
        }
    }

    /// Returns the magazines of threads' memory.
    ///
    /// # Safety
    /// The caller holds this processor, and lets go of the cache before it does anything else with
    /// it.
    #[allow(clippy::mut_from_ref)] // the holder's alone
    pub(crate) unsafe fn magazines(&self) -> &mut Magazines {
        // SAFETY: the caller's contract.
        unsafe { &mut *self.magazines.get() }
    }

    /// Reserves a slot of the default class.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn reserve(&self) -> io::Result<()> {
        let left = self.reservations.get();
        if left > 0 {
            self.reservations.set(left - 1);
            return Ok(());
        }
        // A batch if there is one; near the limits a single one may still be had.
        if pool::reserve(default_class(), RESERVATIONS as usize).is_ok() {
            self.reservations.set(RESERVATIONS - 1);
            return Ok(());
        }
        pool::reserve(default_class(), 1)
    }
}
