//! Spare processors, and the carriers that hold them: they stand in while all others are stuck.
//!
//! Nothing can take a processor from a carrier whose thread computes, waits in the kernel for a
//! file, or spins until another thread has run. But the kernel can share the cores between
//! carriers. So when every processor has been stuck in one thread for a while and other threads
//! wait, the [monitor](super::monitor) adds a processor with a carrier of its own; a computing
//! thread then shares its core with the rest as a platform thread would. When there are more
//! processors than parallelism and stuck ones account for, the monitor lets one go again.
//!
//! | state    | entered                                  | left                                     |
//! |----------|------------------------------------------|------------------------------------------|
//! | NEW      | at start                                 | [`add`]: to ACTIVE, with a new carrier   |
//! | ACTIVE   | [`add`]                                  | nothing to run, by its carrier: to RESTING; [`dismiss`]: to LEAVING |
//! | LEAVING  | [`dismiss`]                              | its carrier, at maintenance: to RESTING  |
//! | RESTING  | its carrier, once the queue is empty     | [`add`]: to ACTIVE, wakes the carrier    |
//!
//! [`add`] and [`dismiss`] are the monitor's alone. Only the holder puts threads into a processor's
//! queue, so none can be left behind in that of a resting one. Stacks and reservations go back as
//! well, so that nothing is kept from those who still run. Its timers are in the others' shards.

use super::processor::Processor;
use super::{carriers, default_class, driver, idle};
use crate::stack::pool;
use crate::sys;
use crate::time::Deadline;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering::SeqCst};

/// The state of a spare processor.
pub(crate) struct Spare(AtomicU32);

const NEW: u32 = 0;
const ACTIVE: u32 = 1;
const LEAVING: u32 = 2;
const RESTING: u32 = 3;

/// How many are neither NEW nor RESTING.
static COUNT: AtomicUsize = AtomicUsize::new(0);

impl Spare {
    pub(crate) fn new() -> Spare {
        Spare(AtomicU32::new(NEW))
    }

    /// Whether it has a carrier that runs threads.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.0.load(SeqCst), ACTIVE | LEAVING)
    }

    /// Whether it is in use, and not about to leave.
    pub(crate) fn is_active(&self) -> bool {
        self.0.load(SeqCst) == ACTIVE
    }

    /// Whether its carrier is to rest as soon as it can.
    #[inline]
    pub(crate) fn is_leaving(&self) -> bool {
        self.0.load(SeqCst) == LEAVING
    }
}

/// How many are in use.
pub(crate) fn count() -> usize {
    COUNT.load(SeqCst)
}

/// Memory that must be left for a new carrier: its stack, and several times what it allocates.
const ROOM: usize = 16 << 20;

/// Puts one of the spare processors to work, if there is one left. The monitor's alone.
pub(crate) fn add() -> bool {
    let unused = |processor: &&Processor| {
        let spare = processor.spare.as_ref();
        spare.is_some_and(|spare| !spare.is_in_use())
    };
    let Some(processor) = super::all_processors().iter().find(unused) else {
        return false;
    };
    let Some(Spare(state)) = &processor.spare else {
        return false;
    };
    if state.load(SeqCst) == NEW {
        return begin(processor, state);
    }
    COUNT.fetch_add(1, SeqCst);
    state.store(ACTIVE, SeqCst);
    sys::futex_wake(state.as_ptr(), 1);
    true
}

/// Takes a NEW processor into use. If there are no more stacks or OS threads, those that are stuck
/// will have to do.
fn begin(processor: &'static Processor, state: &AtomicU32) -> bool {
    // To start a thread allocates here and there, and aborts where there is no memory.
    let mut room: Vec<u8> = Vec::new();
    if core::hint::black_box(&mut room)
        .try_reserve_exact(ROOM)
        .is_err()
    {
        return false;
    }
    drop(room);
    // For what its cache may hold back: see `pool`. Kept for good.
    if pool::reserve(default_class(), pool::CACHE).is_err() {
        return false;
    }
    super::use_processors_up_to(processor.index);
    COUNT.fetch_add(1, SeqCst);
    state.store(ACTIVE, SeqCst);
    if carriers::start_one(processor).is_err() {
        state.store(NEW, SeqCst);
        COUNT.fetch_sub(1, SeqCst);
        pool::unreserve(default_class(), pool::CACHE);
        return false;
    }
    true
}

/// Lets a processor go as soon as its carrier comes round. The monitor's alone.
pub(crate) fn dismiss(processor: &Processor) {
    if let Some(Spare(state)) = &processor.spare {
        // It may be resting already.
        let _ = state.compare_exchange(ACTIVE, LEAVING, SeqCst, SeqCst);
    }
}

/// Rests until the processor is needed again.
///
/// # Safety
/// The caller's carrier holds `processor`, a spare one.
pub(crate) unsafe fn rest(processor: &'static Processor) {
    let Some(Spare(state)) = &processor.spare else {
        return;
    };
    // SAFETY: the caller holds it.
    unsafe { processor.empty() };
    // Those asleep were told nothing of what has happened here. If nobody is, the monitor is awake.
    if idle::work_in_sight() {
        idle::notify();
    }
    if idle::count() > 0 && driver::driver().unattended() {
        driver::driver().kick();
    }
    COUNT.fetch_sub(1, SeqCst);
    state.store(RESTING, SeqCst);
    while state.load(SeqCst) == RESTING {
        let _ = sys::futex_wait(state, RESTING, Deadline::NEVER);
    }
}
