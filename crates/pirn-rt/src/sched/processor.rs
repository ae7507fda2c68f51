//! A processor: the right to run virtual threads, and the state that goes with it.
//!
//! There are as many processors as the parallelism asked for; a carrier runs virtual threads only
//! while it holds one. Only its holder touches what a processor owns, except the run queue (others
//! steal from it) and the counters that others read.

use super::counters::{Counters, Mounts};
use super::local_queue::{LocalQueue, RingSlot};
use super::os_thread;
use super::ready_queue::Batch;
use super::spare::Spare;
use super::turn::Turn;
use crate::continuation::FirstLines;
use crate::runtime::Runtime;
use crate::stack::Slot;
use crate::stack::cache::SlotCache;
use crate::stack::shortage::Shortage;
use crate::sys;
use crate::time;
use crate::vthread::identity::Ids;
use crate::vthread::magazines::Magazines;
use crate::vthread::{Core, Ready};
use core::cell::{Cell, UnsafeCell};
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering};

/// Once per this many switches the carrier looks beyond its own queue: at the injector, due timers,
/// ready descriptors. Go uses the same number.
const MAINTENANCE_EVERY: u32 = 61;
/// The minimum time between two looks for events while there are threads to run.
const LOOK_EVERY_NS: u64 = 20_000;
/// A switch takes 0.1 to 0.3 µs: a five-hundredth of the time at most.
const MOST_GIVEN_WAY: u32 = 8;
/// The most threads in a processor's queue, and in a spare one's. The memory is not touched before
/// it is needed.
const MOST: usize = 1 << 16;
const SPARE: usize = 1 << 10;
/// Reservations moved between a processor and the pool at once.
const RESERVATIONS: u32 = 64;

/// See the module's documentation.
pub struct Processor {
    /// Its place among the processors.
    pub index: usize,
    runtime: NonNull<Runtime>,
    /// The queue owns the right to run the threads in it.
    pub queue: LocalQueue<Core>,
    /// Counts switches: a value that stands still means one thread has been running all the time.
    pub tick: AtomicU32,
    slots: UnsafeCell<SlotCache>,
    /// Memory of ended threads, for new ones.
    magazines: UnsafeCell<Magazines>,
    /// Ids for threads to be spawned here.
    ids: Ids,
    /// Slots reserved in the pool for threads to be spawned here.
    reservations: Cell<u32>,
    /// The time at which its holder last looked for events during maintenance.
    looked: Cell<u64>,
    /// The urgent threads that it has taken since it last looked for others.
    pub(super) urgent_in_a_row: Cell<u32>,
    /// When threads last gave way here to some that may have waited for events, in coarse time, and
    /// how often.
    gave_way: Cell<(u64, u32)>,
    /// The next thread to run, if it has been taken off the queue already.
    next: Cell<Option<Ready>>,
    /// The platform thread that holds it, for the monitor to look at; 0 while it is on the idle
    /// list.
    pub holder: AtomicU32,
    /// The turn of the thread that runs on it.
    pub(crate) turn: Turn,
    /// The state of a processor that is used only while the regular ones are stuck.
    pub spare: Option<Spare>,
    counters: Counters,
    mounts: Mounts,
    /// Whether its holder searches, for people to read.
    searching: AtomicBool,
}

/// Returns the slots of a queue of this many threads: unused, and untouched if they are many.
fn slots(most: usize) -> Box<[RingSlot<Core>]> {
    // SAFETY: zeros are an unused slot.
    unsafe { Box::new_zeroed_slice(2 * most).assume_init() }
}

// SAFETY: the cells are touched by the holder only, as every function that touches them demands.
unsafe impl Sync for Processor {}

// SAFETY: as above; and a runtime may be used by all threads.
unsafe impl Send for Processor {}

impl Processor {
    /// Makes a processor that nobody holds.
    ///
    /// # Safety
    /// `runtime` is valid before anybody else sees the processor, and for ever.
    pub(crate) unsafe fn new(
        index: usize,
        runtime: NonNull<Runtime>,
        spare: Option<Spare>,
    ) -> Processor {
        Processor {
            index,
            runtime,
            queue: LocalQueue::with_slots(slots(if spare.is_some() { SPARE } else { MOST })),
            tick: AtomicU32::new(0),
            slots: UnsafeCell::new(SlotCache::new()),
            magazines: UnsafeCell::new(Magazines::new()),
            ids: Ids::new(),
            reservations: Cell::new(0),
            looked: Cell::new(0),
            urgent_in_a_row: Cell::new(0),
            gave_way: Cell::new((0, 0)),
            next: Cell::new(None),
            holder: AtomicU32::new(0),
            turn: Turn::new(),
            spare,
            counters: Counters::default(),
            mounts: Mounts::new(),
            searching: AtomicBool::new(false),
        }
    }

    /// Returns the runtime that it belongs to.
    #[inline(always)]
    pub fn runtime(&self) -> &'static Runtime {
        // SAFETY: the contract of `new`.
        unsafe { self.runtime.as_ref() }
    }

    /// Returns what has been counted on it. Only its holder adds to it.
    #[inline(always)]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns whether its holder searches.
    #[inline]
    pub fn is_searching(&self) -> bool {
        self.searching.load(Ordering::Relaxed) // Relaxed: for people to read.
    }

    /// Notes whether its holder searches.
    #[inline]
    pub(super) fn set_searching(&self, searching: bool) {
        self.searching.store(searching, Ordering::Relaxed); // Relaxed: as above.
    }

    /// Returns whether the running thread may give way to one that it wakes by what may be an event
    /// of many, and no lock: [`MOST_GIVEN_WAY`] times per unit of coarse time.
    ///
    /// # Safety
    /// The caller's carrier holds the processor.
    #[inline]
    pub(crate) unsafe fn may_give_way(&self) -> bool {
        let now = time::coarse();
        let times = match self.gave_way.get() {
            (last, times) if last == now => times,
            _ => 0,
        };
        self.gave_way.set((now, times + 1));
        times < MOST_GIVEN_WAY
    }

    /// Returns the processor's own ids.
    ///
    /// # Safety
    /// The caller's carrier holds the processor, and does not unmount as long as the reference is
    /// used.
    #[inline]
    pub(crate) unsafe fn ids(&self) -> &Ids {
        &self.ids
    }

    /// Notes that the calling platform thread holds it from now on, which counts as a switch.
    ///
    /// # Safety
    /// It does.
    #[inline]
    pub(crate) unsafe fn held_here(&self) {
        self.holder.store(os_thread::id(), Ordering::Relaxed); // Relaxed: a hint.
        self.turn.exempt(false);
        // SAFETY: the caller's contract.
        unsafe { self.count_look() };
    }

    /// Counts a switch to the carrier's own stack, or a look for work there. Returns the new count.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(super) unsafe fn count_look(&self) -> u32 {
        // SAFETY: the caller's contract.
        let now = unsafe { self.count() };
        self.account(now);
        now
    }

    /// Counts a switch. Returns the new count.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn count(&self) -> u32 {
        // Relaxed: written by the holder only, read by others as a hint.
        let tick = self.tick.load(Ordering::Relaxed).wrapping_add(1);
        self.tick.store(tick, Ordering::Relaxed);
        tick
    }

    /// Returns the thread that a leaving thread may hand over to directly; `None` when the
    /// carrier's own loop must decide.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn next_to_hand_over(&self) -> Option<Ready> {
        // SAFETY: the caller's contract.
        unsafe {
            let now = self.count();
            if now.is_multiple_of(MAINTENANCE_EVERY) {
                self.account(now);
                return None;
            }
            let Some(next) = self.queue.pop() else {
                self.account(now);
                return None;
            };
            let next = Ready::new(next);
            self.fetch_ahead();
            // A new thread needs a stack. Fetching some from the pool takes a kilobyte of stack
            // itself and would make the leaving thread touch another page, so the carrier's own
            // loop does it.
            if next.core().slot().is_none() && (*self.slots.get()).is_empty() {
                let other = self.next.replace(Some(next));
                debug_assert!(other.is_none(), "a thread is lost");
                self.account(now);
                return None;
            }
            Some(next)
        }
    }

    /// Has the machine fetch what the switches after the next will read first, while the next
    /// thread runs: first the `Core`, one switch later the stack and the TLS block. A thread that
    /// has waited for long is in no cache, and each switch to such a one waited for all of these in
    /// a row: a twentieth of the time of a server with 10,000 connections, which has a tenth more
    /// requests with this. To wake 300,000 parked threads: 430 ns each, now 370.
    #[inline(always)]
    fn fetch_ahead(&self) {
        let Some((_, note)) = self.queue.ahead(0) else {
            return;
        };
        FirstLines::from_note(note).fetch();
        if let Some((core, _)) = self.queue.ahead(1) {
            Core::fetch(core);
        }
    }

    /// Accounts for the switches before the latest, which is no mount.
    #[inline]
    fn account(&self, now: u32) {
        self.mounts
            .account(&self.counters, now.wrapping_sub(1), now);
    }

    /// Makes the thread that is about to run hand over to none when it leaves, so that the carrier
    /// looks around.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(super) unsafe fn return_soon(&self) {
        // SAFETY: the caller's contract.
        let tick = unsafe { self.count_look() };
        let last = tick - tick % MAINTENANCE_EVERY + (MAINTENANCE_EVERY - 1);
        self.tick.store(last, Ordering::Relaxed); // Relaxed: as in `count`.
        self.mounts.account(&self.counters, tick, last);
    }

    /// Puts the next thread back, if it has been taken off the queue already. Necessary before a
    /// thread from elsewhere is run: when that one leaves, [`next_to_hand_over`] would take another
    /// off the queue, and this one would be lost.
    ///
    /// [`next_to_hand_over`]: Self::next_to_hand_over
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(super) unsafe fn put_back_next(&self) {
        if let Some(next) = self.next.take() {
            // SAFETY: the caller's contract.
            unsafe { self.enqueue(next) };
        }
    }

    /// Takes the first thread of the queue.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn pop(&self) -> Option<Ready> {
        let next = self.next.take();
        // SAFETY: the caller's contract; the queue gives the right to run each thread once.
        next.or_else(|| unsafe { self.queue.pop().map(|thread| Ready::new(thread)) })
    }

    /// Returns whether it is time to look beyond the own queue; also if
    /// [`next_to_hand_over`](Self::next_to_hand_over) gave nothing for that reason. Counts a
    /// switch.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn maintenance_due(&self) -> bool {
        let due = self
            .tick
            .load(Ordering::Relaxed)
            .is_multiple_of(MAINTENANCE_EVERY); // Relaxed: our own.
        // SAFETY: the caller's contract.
        unsafe { self.count_look() };
        due
    }

    /// Returns whether the holder's last look for events was some time ago. With short switches,
    /// maintenance comes every two microseconds, and the look is a system call.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn look_due(&self) -> bool {
        let now = sys::now();
        let due = now - self.looked.get() >= LOOK_EVERY_NS;
        if due {
            self.looked.set(now);
        }
        due
    }

    /// Puts a runnable thread at the end of the queue; when that is full, into the injector.
    /// Returns the length of the queue.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn enqueue(&self, thread: Ready) -> usize {
        let note = thread.core().continuation.first_lines().to_note();
        // SAFETY: the caller's contract.
        match unsafe { self.queue.push_back(thread.into_raw(), note) } {
            Ok(len) => len,
            // SAFETY: the queue has given the thread back.
            Err(thread) => self.overflow(unsafe { Ready::new(thread) }),
        }
    }

    #[cold]
    fn overflow(&self, thread: Ready) -> usize {
        self.runtime().injector.push(thread);
        self.queue.len()
    }

    /// Takes half of another processor's queue. Returns the first thread, and puts the others into
    /// this one's queue.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn steal_from(&self, victim: &Processor) -> Option<Ready> {
        // SAFETY: the caller's contract; the queue gives the right to run what comes out.
        unsafe {
            let first = victim.queue.steal_into(&self.queue)?;
            self.counters.steals.add(1);
            Some(Ready::new(first))
        }
    }

    /// Moves all of its threads to the injector, and gives back its stacks and reservations,
    /// because it may not be held again for long.
    ///
    /// # Safety
    /// The caller holds this processor.
    pub(crate) unsafe fn empty(&self) {
        // The last thread may have been preempted: then its mount has not been accounted for.
        // SAFETY: the caller's contract.
        unsafe { self.count_look() };
        let mut batch = Batch::new();
        // SAFETY: the caller's contract.
        while let Some(thread) = unsafe { self.pop() } {
            batch.push(thread);
        }
        let runtime = self.runtime();
        runtime.injector.push_batch(batch);
        let stacks = &runtime.stacks;
        // SAFETY: the holder's alone.
        unsafe { (*self.slots.get()).flush(stacks, 0) };
        let reservations = self.reservations.take() as usize;
        stacks.unreserve(runtime.settings.default_class, reservations);
    }

    /// # Safety
    /// The caller holds this processor, and a reservation in the default class.
    #[inline]
    pub(crate) unsafe fn take_slot(&self) -> Slot {
        // SAFETY: the holder's alone.
        unsafe { (*self.slots.get()).take(self.runtime()) }
    }

    /// Moves all cached slots to the pool, which can give their memory back.
    ///
    /// # Safety
    /// The caller holds this processor, or nobody can.
    #[inline]
    pub(crate) unsafe fn give_back_slots(&self) {
        // SAFETY: the holder's alone.
        unsafe { (*self.slots.get()).flush(&self.runtime().stacks, 0) };
    }

    /// Prepares for the next threads while there is nothing else to do.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn prepare(&self) {
        let stacks = &self.runtime().stacks;
        if stacks.has_roomy_to_spare() {
            // SAFETY: the holder's alone.
            unsafe { (*self.slots.get()).prefer_roomy(stacks) };
        }
    }

    /// Gives back a slot of the default class, and the reservation it was taken for.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn put_slot(&self, slot: Slot) {
        let runtime = self.runtime();
        // SAFETY: the holder's alone.
        unsafe { (*self.slots.get()).put(&runtime.stacks, slot) };
        let reservations = self.reservations.get() + 1;
        self.reservations.set(reservations);
        if reservations > 2 * RESERVATIONS {
            let class = runtime.settings.default_class;
            runtime.stacks.unreserve(class, RESERVATIONS as usize);
            self.reservations.set(reservations - RESERVATIONS);
        }
    }

    /// Returns the magazines of threads' memory.
    ///
    /// # Safety
    /// The caller holds this processor, and lets go of the cache before it does anything else with
    /// it.
    #[allow(clippy::mut_from_ref)] // the holder's alone
    #[inline]
    pub(crate) unsafe fn magazines(&self) -> &mut Magazines {
        // SAFETY: the caller's contract.
        unsafe { &mut *self.magazines.get() }
    }

    /// Reserves a slot of the default class.
    ///
    /// # Safety
    /// The caller holds this processor.
    #[inline]
    pub(crate) unsafe fn reserve(&self) -> Result<(), Shortage> {
        let left = self.reservations.get();
        if left > 0 {
            self.reservations.set(left - 1);
            return Ok(());
        }
        let runtime = self.runtime();
        let class = runtime.settings.default_class;
        // A batch if there is one; near the limits a single one may still be had.
        if runtime.stacks.reserve(class, RESERVATIONS as usize).is_ok() {
            self.reservations.set(RESERVATIONS - 1);
            return Ok(());
        }
        runtime.stacks.reserve(class, 1)
    }
}
