//! A processor: the right to run virtual threads, and the state that goes with it.
//!
//! There are as many processors as the parallelism asked for; a carrier runs virtual threads only
//! while it holds one. A platform thread that acquires a processor gets an [`Acquired`], which its
//! carrier keeps and gives back with the processor. Only the holder uses the processor's cells: all
//! functions that do are [`Holder`]'s. Other threads steal from the run queue, and read counters.

use super::carrier::carrier;
use super::counters::{Counters, Mounts};
use super::local_queue::{LocalQueue, RingSlot};
use super::magazines::Magazines;
use super::os_thread;
use super::preempt::request::Request;
use super::ready_queue::Batch;
use super::runtime::Runtime;
use super::spare::Spare;
use crate::continuation::FirstLines;
use crate::no_suspend::NoSuspend;
use crate::stack::Slot;
use crate::stack::pool::SlotCache;
use crate::stack::shortage::Shortage;
use crate::sys;
use crate::time;
use crate::vthread::{Core, Ready, identity};
use core::cell::{Cell, UnsafeCell};
use core::marker::PhantomData;
use core::ops::Deref;
use core::ptr::NonNull;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

/// Once per this many switches the carrier looks beyond its own queue: at the injector, due timers,
/// ready descriptors. Go uses the same number.
const MAINTENANCE_EVERY: u32 = 61;
/// The minimum time between two looks for events while there are threads to run.
const LOOK_EVERY_NS: u64 = 20_000;
/// How often threads on a processor give way, per unit of coarse time, to threads that may have
/// waited for events. A switch takes 0.1 to 0.3 µs, so that is a five-hundredth of the time at
/// most.
const MOST_GIVEN_WAY: u32 = 8;
/// The most threads in a processor's queue, and in a spare one's. The memory is not touched before
/// it is needed.
const MOST: usize = 1 << 16;
const SPARE: usize = 1 << 10;
/// Reservations moved between a processor and the pool at once.
const RESERVATIONS: u32 = 64;

/// See the module's documentation.
pub struct Processor {
    /// Its index among the processors.
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
    /// The number of urgent threads that the holder has taken in a row.
    pub(crate) urgent_in_a_row: Cell<u32>,
    /// The coarse time at which threads last gave way here to others that may have waited for
    /// events, and how often they did.
    gave_way: Cell<(u64, u32)>,
    /// The next thread to run, if it has been taken off the queue already.
    next: Cell<Option<Ready>>,
    /// Whether the holder has put a thread aside since the last
    /// [`take_preempted`](Holder::take_preempted).
    preempted: Cell<bool>,
    /// The kernel's id of the platform thread that holds it, for the monitor; 0 while the processor
    /// is on the idle list.
    pub holder: AtomicU32,
    /// The request to the thread that runs on it to give way.
    pub(crate) request: Request,
    /// When the monitor first saw the thread that runs on it.
    observed: Observed,
    /// The state of a processor that is used only while the regular ones are stuck.
    pub spare: Option<Spare>,
    counters: Counters,
    mounts: Mounts,
    /// Whether its holder searches: statistics only.
    searching: AtomicBool,
}

/// The monitor's last observation of a processor. Only the monitor writes it.
#[derive(Default)]
struct Observed {
    tick: AtomicU32,
    /// When the monitor first saw this count of switches; 0: no platform thread held the processor.
    first_seen: AtomicU64,
}

/// All processors of a runtime.
pub struct Processors {
    /// The regular ones, then the spare ones.
    pub(crate) all: Box<[Processor]>,
    /// The number of them that have ever been used.
    used: AtomicUsize,
    /// One more than the index of the processor that the monitor last found stuck in one thread
    /// while others wait in its queue; 0: none.
    stuck: AtomicUsize,
}

impl Processors {
    /// Makes `regular` and `spares` processors.
    ///
    /// # Safety
    /// `runtime` is valid before another thread sees the processors, and for ever.
    pub(crate) unsafe fn new(
        runtime: NonNull<Runtime>,
        regular: usize,
        spares: usize,
    ) -> Processors {
        let make = |index| {
            let spare = (index >= regular).then(Spare::new);
            // SAFETY: the caller's contract.
            unsafe { Processor::new(index, runtime, spare) }
        };
        Processors {
            all: (0..regular + spares).map(make).collect(),
            used: AtomicUsize::new(regular),
            stuck: AtomicUsize::new(0),
        }
    }

    /// Returns the processors that may have threads: the regular ones, and the spare ones that were
    /// ever used.
    #[inline]
    pub fn used(&self) -> &[Processor] {
        // Acquire: pairs with the Release in `use_up_to`. A caller that sees a processor's thread
        // has synchronised with its carrier, which was started or woken after that.
        &self.all[..self.used.load(Ordering::Acquire)]
    }

    /// Returns the number of processors that there can ever be.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// Returns the number of switches on all processors, which wraps.
    pub fn switches(&self) -> u32 {
        // Relaxed: callers compare sums at two times; a stale count adds to the later difference.
        let ticks = self.used().iter().map(|p| p.tick.load(Ordering::Relaxed));
        ticks.fold(0, u32::wrapping_add)
    }

    /// Makes [`used`](Self::used) include the processor of this index. Only the monitor calls this.
    pub(crate) fn use_up_to(&self, index: usize) {
        self.used.fetch_max(index + 1, Ordering::Release); // Release: see `used`.
    }

    /// Asks the next carrier that looks for work to relieve this processor, even of a single
    /// thread.
    pub(crate) fn report_stuck(&self, index: usize) {
        self.stuck.store(index + 1, Ordering::Relaxed); // Relaxed: ordered by the kick that follows.
    }

    /// Takes the report of a stuck processor, if there is one.
    pub(crate) fn take_stuck(&self) -> Option<&Processor> {
        if self.stuck.load(Ordering::Relaxed) == 0 {
            return None; // Relaxed: as in `report_stuck`.
        }
        let index = self.stuck.swap(0, Ordering::Relaxed).checked_sub(1)?;
        self.used().get(index)
    }
}

/// Returns the slots of a queue of this many threads: unused, and untouched if they are many.
fn slots(most: usize) -> Box<[RingSlot<Core>]> {
    // SAFETY: zeros are an unused slot.
    unsafe { Box::new_zeroed_slice(2 * most).assume_init() }
}

// SAFETY: only `Holder` touches the cells, and one platform thread holds a processor at a time.
unsafe impl Sync for Processor {}

// SAFETY: its parts may be used by any thread, one at a time; all threads may use a runtime.
unsafe impl Send for Processor {}

impl Processor {
    /// Makes a processor that no platform thread holds.
    ///
    /// # Safety
    /// `runtime` is valid before another thread sees the processor, and for ever.
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
            preempted: Cell::new(false),
            holder: AtomicU32::new(0),
            request: Request::new(),
            observed: Observed::default(),
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

    /// Returns the counts of events on it. Only its holder adds to them.
    #[inline(always)]
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// Returns whether its holder searches.
    #[inline]
    pub fn is_searching(&self) -> bool {
        self.searching.load(Ordering::Relaxed) // Relaxed: statistics only.
    }

    /// Looks at the processor. Returns when the running thread was first seen on it; 0 if no
    /// platform thread holds it. For the monitor.
    pub(crate) fn observe(&self, now: u64) -> u64 {
        // Relaxed, all: the monitor looks again at its next tick.
        let (holder, tick) = (
            self.holder.load(Ordering::Relaxed),
            self.tick.load(Ordering::Relaxed),
        );
        let before = self.observed.first_seen.load(Ordering::Relaxed);
        let first_seen = match holder {
            0 => 0,
            _ if before != 0 && tick == self.observed.tick.load(Ordering::Relaxed) => before,
            _ => now,
        };
        if first_seen != before {
            self.observed.tick.store(tick, Ordering::Relaxed);
            self.observed
                .first_seen
                .store(first_seen, Ordering::Relaxed);
        }
        first_seen
    }

    /// Returns when the monitor first saw the running thread here; 0 if it has not seen it yet, or
    /// if no platform thread holds the processor.
    pub fn first_seen(&self) -> u64 {
        // Relaxed, all: the answer may be outdated at once.
        let is_same =
            self.tick.load(Ordering::Relaxed) == self.observed.tick.load(Ordering::Relaxed);
        match is_same && self.holder.load(Ordering::Relaxed) != 0 {
            true => self.observed.first_seen.load(Ordering::Relaxed),
            false => 0,
        }
    }

    /// Returns the count of switches with which the running thread was first seen.
    pub(crate) fn observed_tick(&self) -> u32 {
        self.observed.tick.load(Ordering::Relaxed) // Relaxed: the monitor's own.
    }
}

/// The number of ids that a processor takes at once.
const BLOCK: u64 = 64;

/// A block of ids that a processor has taken, some of which are still unused.
struct Ids {
    next: Cell<u64>,
    end: Cell<u64>,
}

impl Ids {
    /// Returns an empty block.
    #[inline]
    const fn new() -> Ids {
        Ids {
            next: Cell::new(0),
            end: Cell::new(0),
        }
    }

    /// Returns the next id, or the first of another block if this one is used up.
    #[inline]
    fn take(&self) -> u64 {
        let mut id = self.next.get();
        if id == self.end.get() {
            id = identity::take_ids(BLOCK);
            self.end.set(id + BLOCK);
        }
        self.next.set(id + 1);
        id
    }
}

/// Returns an id that no other thread or scope of this process has or will have.
///
/// Ids stay small enough to read. Processors take them in blocks, because all carriers would
/// contend for a single counter.
#[inline]
pub fn next_id() -> u64 {
    let section = NoSuspend::new();
    match carrier(&section).and_then(|carrier| carrier.processor()) {
        Some(processor) => processor.ids.take(),
        None => identity::take_ids(1),
    }
}

/// The calling platform thread's hold on a processor, from the moment when the thread takes the
/// processor off the idle list until it puts it back. `!Send`. Exactly one exists per held
/// processor.
#[must_use = "a processor that is not given back is lost"]
pub(crate) struct Acquired(&'static Processor, PhantomData<*const ()>);

impl Acquired {
    /// Makes the calling platform thread the holder, which counts as a switch.
    ///
    /// # Safety
    /// No platform thread holds the processor, and none can acquire it as long as this exists.
    pub(crate) unsafe fn new(processor: &'static Processor) -> Acquired {
        let acquired = Acquired(processor, PhantomData);
        acquired.holder().note();
        acquired
    }

    /// Returns the right to use the processor.
    #[inline(always)]
    pub(crate) fn holder(&self) -> Holder<'_> {
        Holder(self.0, PhantomData)
    }

    /// Ends the hold. Returns the processor, which the caller puts on the idle list.
    pub(crate) fn end(self) -> &'static Processor {
        self.0.holder.store(0, Ordering::Relaxed); // Relaxed: the monitor reads it at each tick.
        self.0
    }
}

/// The right to use a processor that the calling platform thread holds. `!Send`; `'a` is the borrow
/// of the [`Acquired`], or of the carrier that keeps it, and so of the section that keeps a virtual
/// thread on its carrier.
#[derive(Clone, Copy)]
pub struct Holder<'a>(&'static Processor, PhantomData<(&'a (), *const ())>);

impl Deref for Holder<'_> {
    type Target = Processor;

    #[inline(always)]
    fn deref(&self) -> &Processor {
        self.0
    }
}

impl<'a> Holder<'a> {
    /// # Safety
    /// The calling platform thread holds the processor for `'a`, or no platform thread can acquire
    /// it.
    #[inline(always)]
    pub(crate) unsafe fn new(processor: &'static Processor) -> Holder<'a> {
        Holder(processor, PhantomData)
    }

    /// Returns the processor.
    #[inline]
    pub(crate) fn get(self) -> &'static Processor {
        self.0
    }

    /// Notes that the calling platform thread holds it from now on, which counts as a switch.
    #[inline]
    pub(crate) fn note(self) {
        // Relaxed: the monitor reads it at each tick.
        self.holder.store(os_thread::id(), Ordering::Relaxed);
        self.count_look();
    }

    /// Notes whether the holder searches.
    #[inline]
    pub(crate) fn set_searching(self, searching: bool) {
        self.searching.store(searching, Ordering::Relaxed); // Relaxed: statistics only.
    }

    /// Returns whether the running thread may give way to a thread that it wakes, if the wake may
    /// be one of many for an event and is not the release of a lock: [`MOST_GIVEN_WAY`] times per
    /// unit of coarse time.
    #[inline]
    pub(crate) fn may_give_way(self) -> bool {
        let now = time::coarse();
        let times = match self.gave_way.get() {
            (last, times) if last == now => times,
            _ => 0,
        };
        self.gave_way.set((now, times + 1));
        times < MOST_GIVEN_WAY
    }

    /// Notes that the holder has just put a thread aside.
    pub(crate) fn set_preempted(self) {
        self.preempted.set(true);
    }

    /// Returns whether the holder has put a thread aside since the last call.
    #[inline]
    pub(crate) fn take_preempted(self) -> bool {
        self.preempted.get() && self.preempted.replace(false)
    }

    /// Counts a switch to the carrier's own stack, or a look for work there. Returns the new count.
    #[inline]
    pub(crate) fn count_look(self) -> u32 {
        let now = self.count();
        self.account(now);
        now
    }

    /// Counts a switch. Returns the new count.
    #[inline]
    pub(crate) fn count(self) -> u32 {
        // Relaxed: only the holder writes it; other readers tolerate an older count.
        let tick = self.tick.load(Ordering::Relaxed).wrapping_add(1);
        self.tick.store(tick, Ordering::Relaxed);
        tick
    }

    /// Returns the thread that a leaving thread may hand over to directly; `None` when the
    /// carrier's own loop must decide.
    #[inline]
    pub(crate) fn next_to_hand_over(self) -> Option<Ready> {
        let now = self.count();
        if now.is_multiple_of(MAINTENANCE_EVERY) {
            self.account(now);
            return None;
        }
        let Some(next) = self.pop_queue() else {
            self.account(now);
            return None;
        };
        self.prefetch();
        // A new thread needs a stack. Fetching some from the pool takes a kilobyte of stack itself
        // and would make the leaving thread touch another page, so the carrier's own loop does it.
        if next.core().slot().is_none() && self.with_slots(|slots| slots.is_empty()) {
            let other = self.next.replace(Some(next));
            debug_assert!(other.is_none(), "a thread is lost");
            self.account(now);
            return None;
        }
        Some(next)
    }

    /// Makes the CPU fetch what the switches after the next will read first, while the next thread
    /// runs: first the `Core`, one switch later the stack and the TLS block. A thread that has
    /// waited for long is in no cache. Without this, each switch to such a thread waited for all of
    /// these one after the other, which took a twentieth of the time of a server with 10,000
    /// connections. With this, that server answers a tenth more requests, and a wake of 300,000
    /// parked threads takes 370 ns per thread instead of 430.
    #[inline(always)]
    fn prefetch(self) {
        let Some((_, note)) = self.queue.next_but(0) else {
            return;
        };
        FirstLines::from_note(note).fetch();
        if let Some((core, _)) = self.queue.next_but(1) {
            Core::fetch(core);
        }
    }

    /// Accounts for the switches before the latest, which is not a mount.
    #[inline]
    fn account(self, now: u32) {
        self.mounts
            .account(&self.counters, now.wrapping_sub(1), now);
    }

    /// Makes the thread that is about to run switch to the carrier's loop when it leaves, and not
    /// to another thread, so that the carrier looks around.
    #[inline]
    pub(crate) fn return_soon(self) {
        let tick = self.count_look();
        let last = (tick - tick % MAINTENANCE_EVERY).wrapping_add(MAINTENANCE_EVERY - 1);
        self.tick.store(last, Ordering::Relaxed); // Relaxed: see `count`.
        self.mounts.account(&self.counters, tick, last);
    }

    /// Puts the next thread back, if it has been taken off the queue already. Necessary before a
    /// thread from another queue is run: when that one leaves, [`next_to_hand_over`] would take
    /// another off the queue, and this one would be lost.
    ///
    /// [`next_to_hand_over`]: Self::next_to_hand_over
    #[inline]
    pub(crate) fn put_back_next(self) {
        if let Some(next) = self.next.take() {
            self.enqueue(next);
        }
    }

    /// Takes the first thread of the queue.
    #[inline]
    pub(crate) fn pop(self) -> Option<Ready> {
        self.next.take().or_else(|| self.pop_queue())
    }

    #[inline(always)]
    fn pop_queue(self) -> Option<Ready> {
        // SAFETY: the holder owns the queue, which gives the right to run each thread once.
        unsafe { self.queue.pop().map(|thread| Ready::new(thread)) }
    }

    /// Replaces a large queue that is nearly empty by the smallest.
    pub(crate) fn shrink_queue(self) {
        // SAFETY: the holder owns the queue.
        unsafe { self.queue.shrink() };
    }

    /// Returns whether it is time to look beyond the own queue; also if
    /// [`next_to_hand_over`](Self::next_to_hand_over) gave nothing for that reason. Counts a
    /// switch.
    #[inline]
    pub(crate) fn maintenance_due(self) -> bool {
        // Relaxed: only the holder writes it.
        let due = (self.tick.load(Ordering::Relaxed)).is_multiple_of(MAINTENANCE_EVERY);
        self.count_look();
        due
    }

    /// Returns whether the holder's last look for events was some time ago. With short switches,
    /// maintenance comes every two microseconds, and the look is a system call.
    #[inline]
    pub(crate) fn look_due(self) -> bool {
        let now = sys::now();
        let due = now - self.looked.get() >= LOOK_EVERY_NS;
        if due {
            self.looked.set(now);
        }
        due
    }

    /// Puts a runnable thread at the end of the queue; when that is full, into the injector.
    /// Returns the length of the queue.
    #[inline]
    pub(crate) fn enqueue(self, thread: Ready) -> usize {
        let note = thread.core().continuation.first_lines().to_note();
        // SAFETY: the holder owns the queue.
        match unsafe { self.queue.push_back(thread.into_raw(), note) } {
            Ok(len) => len,
            // SAFETY: the queue has given the thread back.
            Err(thread) => self.overflow(unsafe { Ready::new(thread) }),
        }
    }

    #[cold]
    fn overflow(self, thread: Ready) -> usize {
        self.runtime().injector.push(thread);
        self.queue.len()
    }

    /// Takes half of another processor's queue. Returns the first thread, and puts the others into
    /// this one's queue.
    #[inline]
    pub(crate) fn steal_from(self, victim: &Processor) -> Option<Ready> {
        // SAFETY: the holder owns its queue; each queue gives the right to run a thread once.
        let first = unsafe { Ready::new(victim.queue.steal_into(&self.queue)?) };
        self.counters.steals.add(1);
        Some(first)
    }

    /// Moves all of its threads to the injector, and gives back its stacks and reservations,
    /// because it may not be held again for long.
    pub(crate) fn empty(self) {
        // The last thread may have been preempted: then its mount has not been accounted for.
        self.count_look();
        let mut batch = Batch::new();
        while let Some(thread) = self.pop() {
            batch.push(thread);
        }
        let runtime = self.runtime();
        runtime.injector.push_batch(batch);
        self.give_back_slots();
        let reservations = self.reservations.take() as usize;
        let class = runtime.settings.default_class;
        runtime.stacks.unreserve(class, reservations);
    }

    #[inline(always)]
    fn with_slots<R>(self, f: impl FnOnce(&mut SlotCache) -> R) -> R {
        // SAFETY: the holder's own, and nothing that is called here comes back to this function.
        f(unsafe { &mut *self.slots.get() })
    }

    /// Takes a slot of the default class for a reservation that the caller has.
    #[inline]
    pub(crate) fn take_slot(self) -> Slot {
        self.with_slots(|slots| slots.take(&self.runtime().stacks))
    }

    /// Moves all cached slots to the pool, which can give their memory back.
    #[inline]
    pub(crate) fn give_back_slots(self) {
        self.with_slots(|slots| slots.flush(&self.runtime().stacks, 0));
    }

    /// Prepares for the next threads while there is nothing else to do.
    #[inline]
    pub(crate) fn prepare(self) {
        let stacks = &self.runtime().stacks;
        if stacks.has_large_to_spare() {
            self.with_slots(|slots| slots.prefer_large(stacks));
        }
    }

    /// Gives back a slot of the default class, and the reservation it was taken for.
    #[inline]
    pub(crate) fn put_slot(self, slot: Slot) {
        let runtime = self.runtime();
        self.with_slots(|slots| slots.put(&runtime.stacks, slot));
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
    /// The reference is dropped before the next call, also by code that the caller calls.
    #[allow(clippy::mut_from_ref)] // the holder's alone
    #[inline]
    pub(crate) unsafe fn magazines(self) -> &'a mut Magazines {
        // SAFETY: the holder's own, and the caller's contract.
        unsafe { &mut *self.0.magazines.get() }
    }

    /// Reserves a slot of the default class.
    #[inline]
    pub(crate) fn reserve(self) -> Result<(), Shortage> {
        let left = self.reservations.get();
        if left > 0 {
            self.reservations.set(left - 1);
            return Ok(());
        }
        let runtime = self.runtime();
        let class = runtime.settings.default_class;
        // Takes a batch if the pool has one. Near the limits a single slot may still be left.
        if runtime.stacks.reserve(class, RESERVATIONS as usize).is_ok() {
            self.reservations.set(RESERVATIONS - 1);
            return Ok(());
        }
        runtime.stacks.reserve(class, 1)
    }
}
