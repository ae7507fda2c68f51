//! Collecting a snapshot.

use super::snapshot::{Carrier, CarrierState, Metrics, Offloaded, Parks, StackSlots, Threads};
use super::{Latency, Memory};
use crate::hooks::hooks;
use crate::{events, findings};
use core::sync::atomic::Ordering::Relaxed;
use pirn_rt::blocking::fds;
use pirn_rt::runtime::Runtime;
use pirn_rt::sched::Processor;
use pirn_rt::sched::counters::{Counter, Counters};
use pirn_rt::sched::spare::Spare;
use pirn_rt::vthread::awaited::Kind;
use pirn_rt::vthread::table;
use std::collections::HashMap;
use std::time::Duration;

/// How much trouble to take.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// Counters and lengths only: some microseconds.
    Counters,
    /// The memory, too.
    Thorough,
}

/// The number of slots about whose memory the kernel is asked.
const SLOTS: usize = 4096;

/// Takes a snapshot of one runtime.
pub fn collect(runtime: &Runtime, depth: Depth) -> Metrics {
    // In this order, so that no thread has ended, or was woken, that was not started, or parked.
    let ended = runtime.sum(|c| &c.ended);
    let dropped = runtime.sum(|c| &c.dropped);
    let wakes = runtime.sum(|c| &c.woken);
    let parks = parks(runtime);
    let begun = runtime.sum(|c| &c.begun);
    let started = runtime.sum(|c| &c.started);
    let used = runtime.processors.used();
    let numbers = numbers(used).into_iter();
    let carriers: Vec<Carrier> = numbers.zip(used).map(|(n, it)| carrier(n, it)).collect();
    let threads = threads(&Flows {
        started,
        begun,
        ended,
        dropped,
        parked: parks.all(),
        woken: wakes,
        busy: busy(&carriers),
    });
    let slots_used = begun.saturating_sub(ended);
    let queues = carriers.iter().map(|carrier| carrier.run_queue);
    Metrics {
        threads,
        started,
        ended: ended + dropped,
        panicked: runtime.sum(|c| &c.panicked),
        interrupts: runtime.sum(|c| &c.interrupts),
        preemptions: runtime.sum(|c| &c.preempted),
        wakes,
        parks,
        mounts: runtime.sum(|c| &c.mounted),
        steals: runtime.sum(|c| &c.steals),
        schedule_latency: Latency::of(runtime.counters()),
        parallelism: runtime.settings.parallelism,
        spare_carriers: runtime.spares_in_use.count(),
        run_queue: queues.sum::<usize>() + runtime.injector.len() + runtime.turns.len(),
        carriers,
        offloaded_calls: Offloaded {
            bounded: runtime.sum(|c| &c.offloaded),
            dedicated: runtime.sum(|c| &c.offloaded_alone),
        },
        offload_threads: runtime.pool.threads(),
        timers: runtime.timers.census().0,
        descriptors: fds::census().0,
        scopes: (hooks().open_scopes)(),
        stack_slots: stack_slots(runtime, slots_used),
        events_dropped: events::lost(),
        diagnostics: findings::totals().collect(),
        memory: match depth {
            Depth::Counters => Memory::default(),
            Depth::Thorough => Memory::of(runtime, slots_used, SLOTS),
        },
    }
}

/// The counters from which the numbers of threads by state follow.
struct Flows {
    started: u64,
    begun: u64,
    ended: u64,
    dropped: u64,
    parked: u64,
    woken: u64,
    /// Carriers that have a thread mounted.
    busy: u64,
}

/// Returns the number of threads in each state. The counters were read one after the other, so
/// differences are bounded by what there can be.
fn threads(flows: &Flows) -> Threads {
    let all = flows.started.saturating_sub(flows.ended + flows.dropped);
    let new = flows.started.saturating_sub(flows.begun + flows.dropped);
    let new = new.min(all);
    let waiting = flows.parked.saturating_sub(flows.woken).min(all - new);
    let running = flows.busy.min(all - new - waiting);
    Threads {
        new,
        runnable: all - new - waiting - running,
        running,
        waiting,
    }
}

/// Returns the number of carriers that have a thread mounted.
fn busy(carriers: &[Carrier]) -> u64 {
    let busy =
        |carrier: &&Carrier| matches!(carrier.state, CarrierState::Running | CarrierState::Stuck);
    carriers.iter().filter(busy).count() as u64
}

/// The words for what threads wait for.
const KINDS: [(&str, Kind); 19] = [
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

fn parks(runtime: &Runtime) -> Parks {
    let count = |kind| runtime.sum(|counters| &counters.parked[kind as usize]);
    Parks(KINDS.map(|(word, kind)| (word, count(kind))).into())
}

/// Returns the kernel's id of the platform thread that holds a processor.
fn holder(processor: &Processor) -> Option<u32> {
    let holder = processor.holder.load(Relaxed); // Relaxed: for people to read.
    let is_in_use = processor.spare.as_ref().is_none_or(Spare::is_in_use);
    (holder != 0 && is_in_use).then_some(holder)
}

/// Returns the numbers of the carriers that hold these processors, as in dumps and in the names of
/// their threads: a carrier that wakes takes whichever processor is free. Processors that no
/// carrier holds have the rest of the numbers.
fn numbers(processors: &[Processor]) -> Vec<usize> {
    let all = table::carriers().map(|carrying| (carrying.platform, carrying.number as usize));
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

/// Describes a processor and its carrier, which has this number.
fn carrier(number: usize, processor: &Processor) -> Carrier {
    let tid = holder(processor);
    let stuck = &processor.runtime().stuck;
    let (stuck_episodes, stuck_nanos) = stuck.totals(processor.index);
    let state = match tid {
        Some(_) if stuck.episode(processor.index).is_some() => CarrierState::Stuck,
        Some(_) if processor.is_searching() => CarrierState::Searching,
        Some(_) => CarrierState::Running,
        None => CarrierState::Sleeping,
    };
    let counters = processor.counters();
    let get = |counter: fn(&Counters) -> &Counter| counter(counters).get();
    Carrier {
        number,
        processor: processor.index,
        state,
        tid,
        spare: processor.spare.is_some(),
        run_queue: processor.queue.len(),
        mounts: get(|c| &c.mounted),
        parks: counters.parked.iter().map(Counter::get).sum(),
        wakes: get(|c| &c.woken),
        started: get(|c| &c.started),
        ended: get(|c| &c.ended),
        steals: get(|c| &c.steals),
        preemptions: get(|c| &c.preempted),
        stuck_episodes,
        stuck: Duration::from_nanos(stuck_nanos),
    }
}

fn stack_slots(runtime: &Runtime, used: u64) -> StackSlots {
    let census = runtime.stacks.census();
    let [planned, free, closed] = [census.planned, census.open, census.closed].map(|n| n as u64);
    StackSlots {
        used,
        // The warm ones, those in processors' caches, and those that are just being given back.
        cached: planned.saturating_sub(used + free + closed),
        free,
        closed,
    }
}
