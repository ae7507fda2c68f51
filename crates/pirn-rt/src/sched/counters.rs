//! What has happened on a processor, counted.
//!
//! Each processor has counters of its own, in cache lines of their own. Only its holder writes
//! them, so counting takes one instruction, an addition in memory, and no lock prefix. Readers sum
//! them over all processors. What happens outside of all processors (a platform thread spawns or
//! wakes a thread, a scheduler of the program runs one) is counted in the runtime's shared
//! counters, by atomic additions.
//!
//! All counters only grow. Numbers that also go down are differences of two of them:
//!
//! ```text
//!              started                                          ended, dropped
//!   --> made -----------> new --begun--> running  --------------------------->
//!                                         |    ^ \ preempted, yielded ^
//!                                  parked |    |  +---> runnable -----+
//!                                         v    |            ^
//!                                        waiting --- woken -+
//!
//!   new = started - begun - dropped        waiting = parked - woken
//! ```
//!
//! A yield is not counted. Mounts are the switches that a processor counts anyway, less those that
//! mounted nothing; see [`Mounts`].

use super::latency::Latencies;
use super::processor::Processor;
use crate::mark::{self, Raised};
use crate::runtime::Runtime;
use crate::vthread;
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release},
};

/// A number that only grows.
#[derive(Default)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Returns zero.
    pub(crate) const fn new() -> Counter {
        Counter(AtomicU64::new(0))
    }

    /// Adds to a counter that only the calling thread writes.
    #[inline(always)]
    pub(crate) fn add(&self, count: u64) {
        // Relaxed: the caller's own last store. Release: pairs with the Acquire in `get`: a reader
        // that sees that a thread has ended also sees that it was started.
        self.0
            .store(self.0.load(Relaxed).wrapping_add(count), Release);
    }

    /// Adds to a counter that several threads write.
    #[cold]
    pub(crate) fn add_shared(&self, count: u64) {
        self.0.fetch_add(count, Release); // Release: as in `add`.
    }

    /// Returns the number.
    #[inline]
    pub fn get(&self) -> u64 {
        self.0.load(Acquire) // Acquire: pairs with the Release in `add`.
    }
}

/// The number of counters of parks: one per [`Kind`], and a power of two.
pub(crate) const KINDS: usize = 32;

/// One wake or start out of this many is timed. A power of two.
const TIMED: u64 = 64;

/// See the module's documentation.
#[repr(C, align(64))]
#[derive(Default)]
pub struct Counters {
    /// Threads that were spawned here, and so became runnable for the first time.
    pub started: Counter,
    /// Threads that were mounted for the first time here.
    pub begun: Counter,
    /// Threads that ended here.
    pub ended: Counter,
    /// Parked threads that were made runnable here.
    pub woken: Counter,
    /// Threads mounted here, but for the latest; see [`Mounts`].
    pub mounted: Counter,
    /// Threads that were unmounted here to wait, by what they wait for.
    pub parked: [Counter; KINDS],
    /// Threads that a scheduler of the program dropped before they ran.
    pub dropped: Counter,
    /// Threads whose code panicked.
    pub panicked: Counter,
    /// Threads that were taken off the processor while they computed.
    pub preempted: Counter,
    /// Interrupts of virtual threads.
    pub interrupts: Counter,
    /// Takings of threads from the queues of other processors.
    pub steals: Counter,
    /// Calls made by the pool of platform threads.
    pub offloaded: Counter,
    /// Calls made by platform threads of their own.
    pub offloaded_alone: Counter,
    /// For how long some threads were runnable before they ran.
    pub latencies: Latencies,
}

/// Why a thread becomes runnable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cause {
    /// It is new.
    Start,
    /// It was parked.
    Wake,
    /// It gives way to others, which is not counted.
    Yield,
}

impl Counters {
    /// Counts that a thread becomes runnable. Returns whether this is one of those to be timed.
    ///
    /// The compiler makes an addition in memory, a test in memory and a branch of it.
    #[inline(always)]
    pub(super) fn runnable(&self, cause: Cause) -> bool {
        let counter = match cause {
            Cause::Start => &self.started,
            Cause::Wake => &self.woken,
            Cause::Yield => return false,
        };
        counter.add(1);
        // Relaxed: our own.
        counter.0.load(Relaxed).is_multiple_of(TIMED)
    }

    /// Does the same as [`runnable`](Self::runnable) for the shared counters.
    #[cold]
    pub(super) fn runnable_shared(&self, cause: Cause) -> bool {
        let counter = match cause {
            Cause::Start => &self.started,
            Cause::Wake => &self.woken,
            Cause::Yield => return false,
        };
        counter.add_shared(1);
        counter.get().is_multiple_of(TIMED)
    }

    /// Counts a thread that is about to be unmounted to wait.
    #[inline(always)]
    pub fn park(&self, kind: u8) {
        self.parked[usize::from(kind) % KINDS].add(1);
    }

    /// Does the same as [`park`](Self::park) for the shared counters.
    #[cold]
    #[inline(never)]
    pub(crate) fn park_shared(&self, kind: u8) {
        self.parked[usize::from(kind) % KINDS].add_shared(1);
    }
}

/// Finds out how many of a processor's switches were mounts.
///
/// The processor's count goes up by one for each direct hand-over from thread to thread, and also
/// when its carrier looks for work. To count the hand-overs apart would cost each yield an
/// instruction. Instead the count is looked at whenever a thread hands over to none, after at most
/// 61 switches: all since the last look were hand-overs.
pub(super) struct Mounts {
    /// The count up to which the switches have been accounted for.
    seen: Cell<u32>,
}

impl Mounts {
    pub(super) fn new() -> Mounts {
        Mounts { seen: Cell::new(0) }
    }

    /// Adds the hand-overs up to the count `last`. Later switches up to `now` are none.
    #[inline]
    pub(super) fn account(&self, counters: &Counters, last: u32, now: u32) {
        counters
            .mounted
            .add(last.wrapping_sub(self.seen.get()).into());
        self.seen.set(now);
    }
}

/// Counts an event of `runtime`, which is rare.
#[cold]
pub fn note(runtime: &Runtime, counter: impl Fn(&Counters) -> &Counter) {
    add(runtime, 1, counter);
}

/// Adds to a counter of `runtime`.
#[cold]
pub(crate) fn add(runtime: &Runtime, count: u64, counter: impl Fn(&Counters) -> &Counter) {
    let mark = Raised::new();
    let processor = vthread::carrier(&mark).and_then(|carrier| carrier.processor());
    match processor.filter(|processor| ptr::eq(processor.runtime(), runtime)) {
        // In a handler, an addition of the interrupted code may be half done.
        Some(processor) if !mark::in_handler() => counter(processor.counters()).add(count),
        _ => counter(&runtime.outside).add_shared(count),
    }
}

/// Counts a panic of the running thread's code, if that is a virtual thread.
#[cold]
pub(crate) fn note_panic() {
    if let Some(thread) = vthread::current() {
        note(thread.runtime(), |counters| &counters.panicked);
    }
}

impl Runtime {
    /// Returns the counters of all processors, and the shared ones.
    pub fn counters(&self) -> impl Iterator<Item = &Counters> + Clone {
        let own = self.processors.used().iter().map(Processor::counters);
        own.chain([&self.outside])
    }

    /// Returns the sum of a counter.
    pub fn sum(&self, counter: impl Fn(&Counters) -> &Counter) -> u64 {
        self.counters()
            .map(|counters| counter(counters).get())
            .sum()
    }
}
