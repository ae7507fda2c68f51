//! Collecting the numbers of a snapshot.

use super::{Carrier, CarrierState, Latency, Metrics};
use crate::events;
use crate::hooks::hooks;
use core::sync::atomic::Ordering::Relaxed;
use pirn_rt::blocking::{fds, parking_lot};
use pirn_rt::glibc::tls;
use pirn_rt::sched::Processor;
use pirn_rt::sched::counters::{BUCKETS, Counter, Counters};
use pirn_rt::sched::runtime::Runtime;
use pirn_rt::sched::spare::Spare;
use pirn_rt::sched::{self, magazines};
use pirn_rt::stack::{shortage::meminfo, stats};
use pirn_rt::sys;
use pirn_rt::vthread::table;
use pirn_rt::vthread::wait_reason::Kind;
use std::collections::HashMap;

/// The numbers of a snapshot, from which the [table](super::export) makes the public ones.
#[derive(Default)]
pub(crate) struct Sample {
    /// By state: new, runnable, running, waiting.
    pub(crate) threads: [u64; 4],
    pub(crate) started: u64,
    pub(crate) ended: u64,
    pub(super) panicked: u64,
    pub(super) interrupts: u64,
    pub(super) preemptions: u64,
    /// In the order of [`KINDS`].
    pub(super) parks: [u64; KINDS.len()],
    pub(super) wakes: u64,
    pub(super) mounts: u64,
    pub(super) steals: u64,
    pub(super) latency: Latency,
    pub(super) parallelism: usize,
    pub(super) carriers: Vec<Carrier>,
    pub(super) spare_carriers: usize,
    pub(super) run_queue: usize,
    /// Bounded, dedicated.
    pub(super) offloaded_calls: [u64; 2],
    pub(super) offload_threads: usize,
    pub(super) timers: usize,
    pub(super) descriptors: usize,
    pub(super) scopes: usize,
    /// By state: used, cached, free, closed.
    pub(super) stack_slots: [u64; 4],
    pub(super) events_dropped: u64,
    /// In the order of [`MEMORY`].
    pub(crate) memory: Memory,
}

/// Takes a snapshot of one runtime.
pub fn snapshot_of(runtime: &Runtime) -> Metrics {
    Metrics::of(collect(runtime, || memory(runtime)))
}

/// Collects the numbers of one runtime, which takes some microseconds. Its [memory](memory()) takes
/// longer, and comes last: all threads that are counted have theirs by then.
pub(crate) fn collect(runtime: &Runtime, memory: impl FnOnce() -> Memory) -> Sample {
    // In this order, so that no thread counts as ended that does not count as started, and none as
    // woken that does not count as parked.
    let ended = runtime.sum(|c| &c.ended);
    let dropped = runtime.sum(|c| &c.dropped);
    let wakes = runtime.sum(|c| &c.woken);
    let parks = KINDS.map(|(_, kind)| runtime.sum(|counters| &counters.parked[kind as usize]));
    let begun = runtime.sum(|c| &c.begun);
    let started = runtime.sum(|c| &c.started);
    let used = runtime.processors.used();
    let numbers = numbers(used).into_iter();
    let carriers: Vec<Carrier> = numbers.zip(used).map(|(n, it)| carrier(n, it)).collect();
    // The counters were read one after the other, so differences are bounded by what there can be.
    let all = started.saturating_sub(ended + dropped);
    let new = started.saturating_sub(begun + dropped).min(all);
    let parked: u64 = parks.iter().sum();
    let waiting = parked.saturating_sub(wakes).min(all - new);
    let running = busy(&carriers).min(all - new - waiting);
    Sample {
        threads: [new, all - new - waiting - running, running, waiting],
        started,
        ended: ended + dropped,
        panicked: runtime.sum(|c| &c.panicked),
        interrupts: runtime.sum(|c| &c.interrupts),
        preemptions: runtime.sum(|c| &c.preempted),
        wakes,
        parks,
        mounts: runtime.sum(|c| &c.mounted),
        steals: runtime.sum(|c| &c.steals),
        latency: latency(runtime),
        parallelism: runtime.settings.parallelism,
        spare_carriers: runtime.spares_in_use.count(),
        run_queue: runtime.runnable(),
        carriers,
        offloaded_calls: [
            runtime.sum(|c| &c.offloaded),
            runtime.sum(|c| &c.offloaded_alone),
        ],
        offload_threads: runtime.pool.threads(),
        timers: runtime.timers.stats().0,
        descriptors: fds::stats().0,
        scopes: (hooks().open_scopes)(),
        stack_slots: stack_slots(runtime, begun.saturating_sub(ended)),
        events_dropped: events::lost(),
        memory: memory(),
    }
}

/// Returns the number of carriers that have a thread mounted.
fn busy(carriers: &[Carrier]) -> u64 {
    let busy =
        |carrier: &&Carrier| matches!(carrier.state, CarrierState::Running | CarrierState::Stuck);
    carriers.iter().filter(busy).count() as u64
}

/// The words for what threads wait for.
pub(super) const KINDS: [(&str, Kind); 19] = [
    ("futex", Kind::Futex),
    ("mutex", Kind::Mutex),
    ("rwlock_read", Kind::RwLockToRead),
    ("rwlock_write", Kind::RwLockToWrite),
    ("condvar", Kind::Condvar),
    ("semaphore", Kind::Semaphore),
    ("barrier", Kind::Barrier),
    ("once", Kind::Once),
    ("file_lock", Kind::FileLock),
    ("read", Kind::Read),
    ("write", Kind::Write),
    ("poll", Kind::Poll),
    ("sleep", Kind::Sleep),
    ("park", Kind::Park),
    ("join", Kind::Join),
    ("scope", Kind::Scope),
    ("child", Kind::Child),
    ("call", Kind::Call),
    ("other", Kind::Nothing),
];

fn latency(runtime: &Runtime) -> Latency {
    let mut counts = [0; BUCKETS];
    let counters = runtime.counters();
    let sums = counters.map(|counters| counters.latencies.add_to(&mut counts));
    let sum = sums.fold(0, u64::wrapping_add);
    Latency {
        counts: counts.into(),
        sum,
    }
}

/// Returns the kernel's id of the platform thread that holds a processor.
pub(crate) fn holder(processor: &Processor) -> Option<u32> {
    let holder = processor.holder.load(Relaxed); // Relaxed: statistics only.
    let is_in_use = processor.spare.as_ref().is_none_or(Spare::is_in_use);
    (holder != 0 && is_in_use).then_some(holder)
}

/// Returns the numbers of the carriers that hold these processors, as in dumps and in the names of
/// their threads: a carrier that wakes takes whichever processor is free. Processors that no
/// carrier holds have the rest of the numbers.
fn numbers(processors: &[Processor]) -> Vec<usize> {
    let all =
        sched::carrier::carriers().map(|carrying| (carrying.platform, carrying.number as usize));
    let all: HashMap<u32, usize> = all.collect();
    let mut numbers = vec![None; processors.len()];
    for (place, processor) in processors.iter().enumerate() {
        let number = holder(processor).and_then(|holder| all.get(&holder).copied());
        // A carrier that changes its processor just now may be seen at both.
        numbers[place] = number.filter(|_| !numbers.contains(&number));
    }
    let taken = numbers.clone();
    let mut rest = (0..).filter(|number| !taken.contains(&Some(*number)));
    let numbers = numbers.into_iter();
    numbers
        .filter_map(|it| it.or_else(|| rest.next()))
        .collect()
}

/// Returns the state of the carrier that holds a processor, or
/// [`Sleeping`](CarrierState::Sleeping) if no carrier holds it.
pub(crate) fn state(processor: &Processor) -> CarrierState {
    let is_stuck = || (processor.runtime().stuck.episode(processor.index)).is_some();
    match holder(processor) {
        None => CarrierState::Sleeping,
        Some(_) if is_stuck() => CarrierState::Stuck,
        Some(_) if processor.is_searching() => CarrierState::Searching,
        Some(_) => CarrierState::Running,
    }
}

/// Describes a processor and its carrier, which has this number.
fn carrier(number: usize, processor: &Processor) -> Carrier {
    let (stuck_episodes, stuck_ns) = processor.runtime().stuck.totals(processor.index);
    let counters = processor.counters();
    let get = |counter: fn(&Counters) -> &Counter| counter(counters).get();
    Carrier {
        number,
        processor: processor.index,
        state: state(processor),
        tid: holder(processor),
        spare: processor.spare.is_some(),
        counts: [
            ("run_queue", processor.queue.len() as u64),
            ("mounts", get(|c| &c.mounted)),
            ("parks", counters.parked.iter().map(Counter::get).sum()),
            ("wakes", get(|c| &c.woken)),
            ("started", get(|c| &c.started)),
            ("ended", get(|c| &c.ended)),
            ("steals", get(|c| &c.steals)),
            ("preemptions", get(|c| &c.preempted)),
            ("stuck_episodes", stuck_episodes),
            ("stuck_ns", stuck_ns),
        ],
    }
}

fn stack_slots(runtime: &Runtime, used: u64) -> [u64; 4] {
    let stats = runtime.stacks.stats();
    let [planned, free, closed] = [stats.planned, stats.open, stats.closed].map(|n| n as u64);
    // The warm ones, those in processors' caches, and those that are just being given back.
    let cached = planned.saturating_sub(used + free + closed);
    [used, cached, free, closed]
}

/// Bytes of memory, in the order of [`MEMORY`].
pub(crate) type Memory = [u64; MEMORY.len()];

/// The uses of memory.
pub(crate) const MEMORY: [&str; 11] = [
    "stacks_reserved",
    "stacks",
    "stacks_cached",
    "tls",
    "records",
    "timers",
    "parking_lot",
    "tables",
    "page_tables",
    "process",
    "swapped",
];

/// Finds out the memory of a runtime and of the process: some milliseconds.
pub(crate) fn memory(runtime: &Runtime) -> Memory {
    /// The kernel is asked about the memory of this many slots.
    const MOST: usize = 4096;
    let ended = runtime.sum(|c| &c.ended);
    let slots = runtime.sum(|c| &c.begun).saturating_sub(ended);
    let (reserved, region_tables) = stats::reserved();
    let stacks = stats::resident(MOST, table::has_thread);
    let (_, timers) = runtime.timers.stats();
    let (_, descriptor_table) = fds::stats();
    let mut buffer = [0; 4096];
    let status = sys::read_file(c"/proc/self/status", &mut buffer).unwrap_or(&[]);
    let status = core::str::from_utf8(status).unwrap_or("");
    let bytes = |name| meminfo(status, name).unwrap_or(0) << 10;
    [
        reserved as u64,
        stacks.used,
        stacks.free,
        slots * tls::template().bytes_touched() as u64,
        magazines::bytes() as u64,
        timers as u64,
        parking_lot::bytes() as u64,
        (region_tables + table::bytes() + descriptor_table) as u64,
        bytes("VmPTE:"),
        bytes("VmRSS:"),
        bytes("VmSwap:"),
    ]
}
