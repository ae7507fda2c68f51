//! What has happened on a processor, counted.
//!
//! Each processor has counters of its own, in cache lines of their own. Only its holder writes
//! them, so counting takes an addition in memory, which is not atomic. Readers sum
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

use super::carrier::carrier;
use super::processor::Processor;
use super::runtime::Runtime;
use crate::no_suspend::{self, NoSuspend};
use crate::vthread::current;
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
    /// Mounts here, except the latest; see [`Mounts`].
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
pub enum Cause {
    /// The thread is new.
    Start,
    /// The thread was parked.
    Wake,
    /// The thread gives way to others, or was counted before.
    Yield,
}

impl Counters {
    /// Counts that a thread becomes runnable. Returns whether this is one of those to be timed.
    ///
    /// The compiler makes an addition in memory, a test in memory and a branch of it.
    #[inline(always)]
    pub(crate) fn runnable(&self, cause: Cause) -> bool {
        self.of(cause).is_some_and(|counter| {
            counter.add(1);
            // Relaxed: our own.
            counter.0.load(Relaxed).is_multiple_of(TIMED)
        })
    }

    /// Counts in the shared counters what [`runnable`](Self::runnable) counts on a processor.
    #[cold]
    pub(crate) fn runnable_shared(&self, cause: Cause) -> bool {
        self.of(cause).is_some_and(|counter| {
            counter.add_shared(1);
            counter.get().is_multiple_of(TIMED)
        })
    }

    /// Returns the counter of threads that become runnable for a cause; `None`: they are not
    /// counted.
    #[inline(always)]
    fn of(&self, cause: Cause) -> Option<&Counter> {
        match cause {
            Cause::Start => Some(&self.started),
            Cause::Wake => Some(&self.woken),
            Cause::Yield => None,
        }
    }

    /// Counts a thread that is about to be unmounted to wait.
    #[inline(always)]
    pub fn park(&self, kind: u8) {
        self.parked[usize::from(kind) % KINDS].add(1);
    }

    /// Counts in the shared counters what [`park`](Self::park) counts on a processor.
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
pub(crate) struct Mounts {
    /// The count up to which the switches have been accounted for.
    seen: Cell<u32>,
}

impl Mounts {
    pub(crate) fn new() -> Mounts {
        Mounts { seen: Cell::new(0) }
    }

    /// Adds the hand-overs up to the count `last`. The later switches, up to `now`, were no
    /// hand-overs.
    #[inline]
    pub(crate) fn account(&self, counters: &Counters, last: u32, now: u32) {
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
    let section = NoSuspend::new();
    let processor = carrier(&section).and_then(|carrier| carrier.processor());
    match processor.filter(|processor| ptr::eq(processor.runtime(), runtime)) {
        // In a handler, an addition of the interrupted code may be half done.
        Some(processor) if !no_suspend::in_handler() => counter(processor.counters()).add(count),
        _ => counter(&runtime.outside).add_shared(count),
    }
}

/// Counts a panic of the running thread's code, if that is a virtual thread.
#[cold]
pub(crate) fn note_panic() {
    if let Some(thread) = current() {
        note(Runtime::of(&thread), |counters| &counters.panicked);
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

/// The binary logarithm of the first bucket's upper bound, in nanoseconds.
const FIRST: u32 = 8;
/// The binary logarithm of where the last buckets begin: 137 s.
const LAST: u32 = 37;
/// The binary logarithm of the number of buckets per power of two.
const PARTS: u32 = 2;

/// The number of buckets.
pub const BUCKETS: usize = 1 + ((LAST + 1 - FIRST) << PARTS) as usize;

/// For how long threads were runnable before they ran: a histogram that one thread writes.
///
/// One wake or start out of 64 is timed: the record has the time of the wake
/// ([`MountFlags`](crate::vthread::state::MountFlags)) until the mount. Buckets are log-linear,
/// four per power of two, so a value is known to a quarter of it. A bucket has its upper bound, but
/// not its lower one.
///
/// ```text
///   index      0        1            2            3            4            5             ...  120
///   ns     .. 256 | .. 320     | .. 384     | .. 448     | .. 512     | .. 640      | ... | all above 2^37 * 7/4
/// ```
pub struct Latencies {
    counts: [Counter; BUCKETS],
    /// The sum of all values, in nanoseconds.
    sum: Counter,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            counts: [const { Counter::new() }; BUCKETS],
            sum: Counter::new(),
        }
    }
}

/// Returns the bucket of a value.
fn bucket_of(nanos: u64) -> usize {
    let below = nanos.saturating_sub(1);
    let Some(power) = below.checked_ilog2().filter(|&power| power >= FIRST) else {
        return 0;
    };
    let part = (below >> (power - PARTS)) as usize & ((1 << PARTS) - 1);
    let bucket = 1 + (((power - FIRST) as usize) << PARTS) + part;
    bucket.min(BUCKETS - 1)
}

/// Returns the largest value of a bucket, in nanoseconds; `u64::MAX` for the last one.
pub fn upper_bound(bucket: usize) -> u64 {
    match bucket {
        0 => 1 << FIRST,
        _ if bucket >= BUCKETS - 1 => u64::MAX,
        _ => {
            let (power, part) = ((bucket - 1) >> PARTS, (bucket - 1) % (1 << PARTS));
            let power = FIRST + power as u32;
            (1 << power) + ((part as u64 + 1) << (power - PARTS))
        }
    }
}

impl Latencies {
    /// Adds a value, for the only thread that adds any.
    pub(crate) fn add(&self, nanos: u64) {
        self.counts[bucket_of(nanos)].add(1);
        self.sum.add(nanos);
    }

    /// Adds a value, for one of several threads.
    pub(crate) fn add_shared(&self, nanos: u64) {
        self.counts[bucket_of(nanos)].add_shared(1);
        self.sum.add_shared(nanos);
    }

    /// Adds what is in the buckets to `counts`, one for each. Returns the sum of all values.
    pub fn add_to(&self, counts: &mut [u64; BUCKETS]) -> u64 {
        for (total, count) in counts.iter_mut().zip(&self.counts) {
            *total += count.get();
        }
        self.sum.get()
    }
}

#[cfg(test)]
mod tests;
