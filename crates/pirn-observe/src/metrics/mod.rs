//! What the runtime has counted, and how much there is of everything.
//!
//! [`snapshot`] takes a snapshot, [`Metrics`]. `collect` reads the numbers, `export` has the
//! table of all metrics and writes them as text.

mod collect;
mod export;

pub use pirn_dump::CarrierState;

#[doc(hidden)]
pub use collect::snapshot_of;
pub(crate) use collect::{MEMORY, Memory, Sample, collect, holder, memory, state};
#[doc(hidden)]
pub use export::Line;

use core::ops::Index;
use export::Row;
use pirn_rt::sched::counters::upper_bound;
use pirn_rt::sched::runtime;
use std::time::Duration;

/// Returns what the runtime has counted since its start, and how much there is of everything now.
///
/// Counters are exact. They are read one after the other while threads go on, so the counters of
/// one snapshot may differ by what happened meanwhile. Each counter never goes down.
///
/// Nothing is stopped for it. It takes some 0.2 ms, and up to 5 ms if there are many threads, to
/// find out how much memory their stacks use.
///
/// All numbers are 0 before the first virtual thread, and in the child of a `fork`, which has none.
pub fn snapshot() -> Metrics {
    match runtime::get() {
        Some(runtime) => snapshot_of(runtime),
        None => Metrics::of(Sample::default()),
    }
}

/// What a runtime has counted since its start, and how much there is of everything: numbers with
/// names, such as `metrics["started"]` or `metrics["threads.waiting"]`.
///
/// | name | |
/// |---|---|
/// | `threads.new`, `.runnable`, `.running`, `.waiting` | the virtual threads that have not ended, by state |
/// | `started`, `ended`, `panicked` | virtual threads started; ended; whose code panicked |
/// | `interrupts` | interrupts of virtual threads, those by the cancellation of a scope or task included |
/// | `preemptions` | threads taken off their carrier in the middle of a computation, because others waited |
/// | `parks.futex`, `.read`, `.sleep`, … | threads unmounted to wait, by what they waited for |
/// | `wakes` | threads made runnable after that |
/// | `mounts` | threads mounted on a carrier; a carrier that runs is behind by up to 60 |
/// | `steals` | takings of threads from another carrier's run queue: about half of it each time |
/// | `parallelism` | virtual threads that may run at the same time |
/// | `spare_carriers` | carriers in use beyond the parallelism, because others are stuck |
/// | `carrier_states.running`, `.searching`, `.sleeping`, `.stuck` | the [carriers](Self::carriers), by what they do |
/// | `stuck_episodes`, `stuck_ns` | how often, and for how long in all, carriers were stuck |
/// | `run_queue` | runnable threads in the runtime's queues; a `Scheduler` of the program keeps its own |
/// | `offloaded_calls.bounded`, `.dedicated` | calls that end by themselves, made by the pool's platform threads; calls that wait for another party, made by a platform thread each |
/// | `offload_threads` | the platform threads for such calls |
/// | `timers`, `descriptors`, `scopes` | armed timers; descriptors registered with epoll; open scopes |
/// | `stack_slots.used`, `.cached`, `.free`, `.closed` | slots of stacks: of a thread; free, with the memory that they have touched; without it; address space only |
/// | `events_dropped` | events that were overwritten before a recording had read them |
/// | `diagnostics.stuck-carrier`, … | how often each diagnostic was found |
/// | `memory.…` | bytes, see below |
///
/// # Memory
/// `stacks` and `stacks_cached` are the resident memory of slots in use and of free ones, an
/// estimate from 4,096 slots if there are more; `tls` is the part of `stacks` that is thread-locals
/// and glibc's data about the thread. `records`, `timers`, `parking_lot` (threads that wait for
/// locks) and `tables` (slots and descriptors) are memory from `malloc` that has been written to.
/// [`resident_memory`](Self::resident_memory) is the sum. `page_tables` (`VmPTE`), `process`
/// (`VmRSS`) and `swapped` (`VmSwap`) are the whole process's; `stacks_reserved` is address space,
/// which costs nothing by itself.
///
/// Later versions may have more names, and more parts of a name.
#[derive(Clone, Debug)]
pub struct Metrics {
    /// In the order of the table.
    rows: Vec<Row>,
    carriers: Vec<Carrier>,
    latency: Latency,
}

impl Metrics {
    pub(crate) fn of(sample: Sample) -> Metrics {
        Metrics {
            rows: export::rows(&sample),
            carriers: sample.carriers,
            latency: sample.latency,
        }
    }

    /// Returns all numbers in a fixed order: the name, its part or an empty text, and the number.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        self.rows.iter().flat_map(|row| {
            let values = row.metric.parts.iter().zip(&row.values);
            values.map(|(part, value)| (row.metric.key, *part, *value))
        })
    }

    /// Returns the number with this name, which is `"name"` or `"name.part"`.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.find(name).copied()
    }

    fn find(&self, name: &str) -> Option<&u64> {
        let (key, part) = name.split_once('.').unwrap_or((name, ""));
        let row = self.rows.iter().find(|row| row.metric.key == key)?;
        let place = row.metric.parts.iter().position(|known| *known == part)?;
        row.values.get(place)
    }

    /// Returns the sum of all parts of a name; 0 for an unknown name.
    pub fn sum(&self, name: &str) -> u64 {
        let row = self.rows.iter().find(|row| row.metric.key == name);
        row.map_or(0, Row::sum)
    }

    /// Returns the bytes of memory that virtual threads take: all parts that do not overlap. A
    /// program's own data on the heap, and page tables, come on top.
    pub fn resident_memory(&self) -> u64 {
        let parts = [
            "memory.stacks",
            "memory.stacks_cached",
            "memory.records",
            "memory.timers",
            "memory.parking_lot",
            "memory.tables",
        ];
        parts.iter().map(|part| self[part]).sum()
    }

    /// Returns the carriers, spare ones that rest included.
    pub fn carriers(&self) -> &[Carrier] {
        &self.carriers
    }

    /// Returns for how long threads were runnable before they ran. Timed is one start, and one
    /// wake, out of 64.
    pub fn schedule_latency(&self) -> &Latency {
        &self.latency
    }
}

/// Returns the number with this name.
///
/// # Panics
/// If the name is unknown.
impl Index<&str> for Metrics {
    type Output = u64;

    #[track_caller]
    fn index(&self, name: &str) -> &u64 {
        match self.find(name) {
            Some(number) => number,
            None => panic!("there is no metric {name:?}"),
        }
    }
}

/// A right to run virtual threads, and the carrier that has it.
///
/// What it has counted has the names of `mounts`, `parks`, `wakes`, `started`, `ended`, `steals`,
/// `preemptions`, `stuck_episodes` and `stuck_ns` in [`Metrics`]; `run_queue` is the length of its
/// own queue. All is counted by processor: a carrier that wakes takes whichever is free.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Carrier {
    /// The number of the carrier, as in dumps and in the name of its thread.
    pub number: usize,
    /// The number of the processor.
    pub processor: usize,
    /// What the carrier does.
    pub state: CarrierState,
    /// The kernel's id of the platform thread; `None` while it sleeps.
    pub tid: Option<u32>,
    /// Whether it is one beyond the parallelism, which sleeps until it is needed.
    pub spare: bool,
    counts: [(&'static str, u64); 10],
}

impl Carrier {
    /// Returns all numbers, each with its name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.counts.iter().copied()
    }

    /// Returns the number with this name.
    pub fn get(&self, name: &str) -> Option<u64> {
        self.iter().find(|(known, _)| *known == name).map(|it| it.1)
    }
}

/// A histogram of times: how many there were in which range. A time is known to a quarter of it.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// One number per bucket, or none.
    counts: Vec<u64>,
    sum: u64,
}

impl Latency {
    /// Returns how many times were measured.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the measured times.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// Returns a time that a part of `quantile` (from 0 to 1) of the measured times did not exceed,
    /// rounded up to the end of its range; `None` if none were measured.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let rank = (quantile.clamp(0.0, 1.0) * self.count() as f64).ceil() as u64;
        let mut seen = 0;
        let mut ranges = self.ranges();
        let range = ranges.find(|(_, count)| {
            seen += count;
            seen >= rank.max(1)
        });
        range.map(|(end, _)| end)
    }

    /// Returns the ranges in which there are times, from the shortest on: the upper end of each,
    /// and how many times were in it. The last range has no end: that is `Duration::MAX`.
    pub fn ranges(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counts = self.counts.iter().copied().enumerate();
        let some = counts.filter(|&(_, count)| count > 0);
        some.map(|(bucket, count)| match upper_bound(bucket) {
            u64::MAX => (Duration::MAX, count),
            nanos => (Duration::from_nanos(nanos), count),
        })
    }
}
