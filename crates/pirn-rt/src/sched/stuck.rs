//! What the monitor has found about processors that are stuck: for the reporter and for metrics.
//!
//! Time counts as the monitor has seen it: a tick adds at most [`LONGEST_STEP_NS`]. So a process
//! that was stopped by a signal, or a machine that was suspended, does not look stuck afterwards.

use crate::sys::Sleeper;
use crate::time::Deadline;
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};

/// The most that one tick of the monitor adds to the time for which something is stuck. Ticks are
/// 1 to 10 ms apart.
const LONGEST_STEP_NS: u64 = 20_000_000;

/// The monitor's findings; only it writes them.
pub struct Stuck {
    /// One per processor.
    records: Box<[Record]>,
    /// For how long a spare carrier has been wanted, and none could be added.
    wanting: AtomicU64,
    /// The monitor wakes the reporter when an episode has lasted this long.
    report_episode: AtomicU64,
    /// The monitor wakes the reporter when a spare carrier has been wanted for this long.
    report_wanting: AtomicU64,
    /// A limit has been passed since the reporter last napped.
    news: AtomicBool,
    /// The reporter sleeps, or is about to, until the monitor ticks.
    resting: AtomicBool,
    reporter: Sleeper,
}

/// The record of one processor. An *episode* is the time for which one thread keeps it stuck.
#[derive(Default)]
struct Record {
    /// For how long it has lasted; 0: the processor is not stuck.
    ns: AtomicU64,
    /// The number of episodes so far, with this one.
    count: AtomicU32,
    /// The kernel's id of the platform thread that holds the processor.
    holder: AtomicU32,
    /// The processor's count of switches.
    tick: AtomicU32,
    /// The thread is blocked in the kernel; otherwise it computes, and could not be preempted.
    blocked: AtomicBool,
    /// The CPU time that it has used meanwhile, in nanoseconds.
    cpu: AtomicU64,
    /// The sum of all episodes.
    total_ns: AtomicU64,
}

/// A processor that is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The processor's index.
    pub processor: usize,
    /// Its number among the episodes on this processor.
    pub number: u32,
    /// For how long the processor has been stuck.
    pub ns: u64,
    /// The kernel's id of the platform thread that holds it.
    pub holder: u32,
    /// Its count of switches, which changes at the end of the episode.
    pub tick: u32,
    /// Whether the thread is blocked in the kernel. Otherwise it computes and could not be
    /// preempted.
    pub blocked: bool,
    /// The CPU time that the thread has used meanwhile, in nanoseconds.
    pub cpu: u64,
}

// Relaxed, unless the access says more: statistics only, or compared again. `news` publishes to the
// reporter what the monitor wakes it for.
impl Stuck {
    /// Returns the findings of a runtime with this many processors: no processor is stuck.
    pub(crate) fn new(processors: usize) -> Stuck {
        Stuck {
            records: (0..processors).map(|_| Record::default()).collect(),
            wanting: AtomicU64::new(0),
            report_episode: AtomicU64::new(u64::MAX),
            report_wanting: AtomicU64::new(u64::MAX),
            news: AtomicBool::new(false),
            resting: AtomicBool::new(false),
            reporter: Sleeper::new(),
        }
    }

    /// Makes the monitor wake the reporter when a processor has been stuck, or a spare carrier has
    /// been wanted, for this long. Before this call it never does.
    pub fn report_after(&self, episode_ns: u64, wanting_ns: u64) {
        self.report_episode.store(episode_ns, Relaxed);
        self.report_wanting.store(wanting_ns, Relaxed);
    }

    /// Notes whether a processor is stuck, and for how long it has stood still, `step` ns after the
    /// last look.
    pub(crate) fn note(&self, episode: Result<Episode, usize>, step: u64) {
        let stuck = match episode {
            Ok(stuck) => stuck,
            Err(index) => {
                if self.records[index].ns.load(Relaxed) != 0 {
                    self.records[index].ns.store(0, Relaxed);
                }
                return;
            }
        };
        let record = &self.records[stuck.processor];
        let before = record.ns.load(Relaxed);
        let same = before != 0 && record.tick.load(Relaxed) == stuck.tick;
        let (base, step) = match same {
            true => (before, step),
            false => (0, stuck.ns),
        };
        let step = step.min(LONGEST_STEP_NS);
        if !same {
            record.count.store(record.count.load(Relaxed) + 1, Relaxed);
            record.tick.store(stuck.tick, Relaxed);
            record.holder.store(stuck.holder, Relaxed);
        }
        record.blocked.store(stuck.blocked, Relaxed);
        record.cpu.store(stuck.cpu, Relaxed);
        let total = record.total_ns.load(Relaxed);
        record.total_ns.store(total + step, Relaxed);
        record.ns.store(base + step, Release); // Release: pairs with the Acquire in `episode`.
        self.tell_if_passed(base, step, &self.report_episode);
    }

    /// Notes whether a spare carrier is wanted and could not be added.
    pub(crate) fn note_wanting(&self, wanting: bool, step: u64) {
        let before = self.wanting.load(Relaxed);
        if !wanting {
            if before != 0 {
                self.wanting.store(0, Relaxed);
            }
            return;
        }
        let step = step.min(LONGEST_STEP_NS);
        self.wanting.store(before + step, Relaxed);
        self.tell_if_passed(before, step, &self.report_wanting);
    }

    fn tell_if_passed(&self, before: u64, step: u64, limit: &AtomicU64) {
        let limit = limit.load(Relaxed);
        if before < limit && before + step >= limit {
            self.news.swap(true, Release); // Release: pairs with the Acquire in `nap`.
            self.reporter.wake();
        }
    }

    /// Sleeps until the deadline, or until there is something to report. For the reporter.
    pub fn nap(&self, deadline: Deadline) {
        let has_news = || self.news.load(Relaxed);
        self.reporter.sleep_unless(deadline, has_news);
        // Acquire: pairs with the Release in `tell_if_passed`: what the monitor has noted.
        self.news.swap(false, Acquire);
    }

    /// Sleeps until the next tick of the monitor, which has no ticks while all carriers are idle.
    /// For the reporter.
    pub fn rest(&self) {
        self.resting.store(true, Relaxed);
        let has_ticked = || !self.resting.load(Relaxed);
        self.reporter.sleep_unless(Deadline::NEVER, has_ticked);
    }

    /// Wakes the reporter if it rests. The monitor calls this at the end of each tick: if a call
    /// comes too early for a reporter that is about to rest, the next tick wakes it.
    pub(crate) fn end_rest(&self) {
        if self.resting.load(Relaxed) {
            self.resting.swap(false, Relaxed);
            self.reporter.wake();
        }
    }

    /// Returns for how long a spare carrier has been wanted that could not be added.
    pub fn wanting_ns(&self) -> u64 {
        self.wanting.load(Relaxed)
    }

    /// Returns what is known about a processor, if it is stuck.
    pub fn episode(&self, processor: usize) -> Option<Episode> {
        let record = self.records.get(processor)?;
        let ns = record.ns.load(Acquire);
        (ns != 0).then(|| Episode {
            processor,
            number: record.count.load(Relaxed),
            ns,
            holder: record.holder.load(Relaxed),
            tick: record.tick.load(Relaxed),
            blocked: record.blocked.load(Relaxed),
            cpu: record.cpu.load(Relaxed),
        })
    }

    /// Returns all processors that are stuck.
    pub fn episodes(&self) -> impl Iterator<Item = Episode> + '_ {
        (0..self.records.len()).filter_map(|index| self.episode(index))
    }

    /// Returns how often, and for how many nanoseconds in all, a processor has been stuck.
    pub fn totals(&self, processor: usize) -> (u64, u64) {
        let record = &self.records[processor];
        (
            record.count.load(Relaxed).into(),
            record.total_ns.load(Relaxed),
        )
    }
}

#[cfg(test)]
mod tests;
