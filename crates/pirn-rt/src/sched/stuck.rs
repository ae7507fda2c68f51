//! What the monitor has found about processors that are stuck: for those who explain it, and for
//! metrics.
//!
//! Time counts as the monitor has seen it: a tick adds at most [`LONGEST_STEP_NS`]. So a process
//! that was stopped by a signal, or a machine that was suspended, does not look stuck afterwards.

use super::alarm::Alarm;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed};

/// The most that one tick of the monitor adds to the time for which something is stuck. Ticks are
/// 1 to 10 ms apart.
const LONGEST_STEP_NS: u64 = 20_000_000;

/// The monitor's findings; only it writes them.
pub struct Stuck {
    /// One per processor.
    stays: Box<[Stay]>,
    /// For how long a spare carrier has been wanted, and none could be added.
    wanting: AtomicU64,
    /// The times from which on the reporter is told of each.
    report_stay: AtomicU64,
    report_wanting: AtomicU64,
    /// Something is to be reported.
    news: AtomicBool,
    pub alarm: Alarm,
}

/// What is known about one processor: a *stay* is the time for which one thread has kept it stuck.
#[derive(Default)]
struct Stay {
    /// For how long it has lasted; 0: the processor is not stuck.
    ns: AtomicU64,
    /// The number of stays so far, with this one.
    count: AtomicU32,
    /// The kernel's id of the platform thread that holds the processor.
    holder: AtomicU32,
    /// The processor's count of switches.
    tick: AtomicU32,
    /// The thread is blocked in the kernel; otherwise it computes, and could not be preempted.
    blocked: AtomicBool,
    /// The CPU time that it has used meanwhile, in nanoseconds.
    cpu: AtomicU64,
    /// The sum of all stays.
    total_ns: AtomicU64,
}

/// A processor that is stuck.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Episode {
    /// The processor's index.
    pub processor: usize,
    /// The number of this stay among those on this processor.
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

// All is Relaxed here: each value is one for people to read, or is compared again. What the
// reporter is woken for it sees by the edge of `alarm`.
impl Stuck {
    /// Returns the findings of a runtime with this many processors, of which none is stuck.
    pub(crate) fn new(processors: usize) -> Stuck {
        Stuck {
            stays: (0..processors).map(|_| Stay::default()).collect(),
            wanting: AtomicU64::new(0),
            report_stay: AtomicU64::new(u64::MAX),
            report_wanting: AtomicU64::new(u64::MAX),
            news: AtomicBool::new(false),
            alarm: Alarm::new(),
        }
    }

    /// Sets from when on the alarm is raised: when a processor has been stuck, or a spare carrier
    /// been missing, for so long. At first it never is.
    pub fn report_after(&self, stay_ns: u64, wanting_ns: u64) {
        self.report_stay.store(stay_ns, Relaxed);
        self.report_wanting.store(wanting_ns, Relaxed);
    }

    /// Notes whether a processor is stuck, and for how long it has stood still, `step` ns after the
    /// last look.
    pub(super) fn note(&self, episode: Result<Episode, usize>, step: u64) {
        let stuck = match episode {
            Ok(stuck) => stuck,
            Err(index) => {
                if self.stays[index].ns.load(Relaxed) != 0 {
                    self.stays[index].ns.store(0, Relaxed);
                }
                return;
            }
        };
        let stay = &self.stays[stuck.processor];
        let before = stay.ns.load(Relaxed);
        let same = before != 0 && stay.tick.load(Relaxed) == stuck.tick;
        let (base, step) = match same {
            true => (before, step),
            false => (0, stuck.ns),
        };
        let step = step.min(LONGEST_STEP_NS);
        if !same {
            stay.count.store(stay.count.load(Relaxed) + 1, Relaxed);
            stay.tick.store(stuck.tick, Relaxed);
            stay.holder.store(stuck.holder, Relaxed);
        }
        stay.blocked.store(stuck.blocked, Relaxed);
        stay.cpu.store(stuck.cpu, Relaxed);
        let total = stay.total_ns.load(Relaxed);
        stay.total_ns.store(total + step, Relaxed);
        stay.ns.store(base + step, Relaxed);
        self.tell_if_passed(base, step, &self.report_stay);
    }

    /// Notes whether a spare carrier is wanted and could not be added.
    pub(super) fn note_wanting(&self, wanting: bool, step: u64) {
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
            self.news.store(true, Relaxed);
        }
    }

    /// Wakes the reporter if there is anything to report. For the end of a tick.
    pub(super) fn tell(&self) {
        if self.news.load(Relaxed) {
            self.news.store(false, Relaxed);
            self.alarm.raise();
        } else {
            self.alarm.stir();
        }
    }

    /// Returns for how long a spare carrier has been wanted that could not be added.
    pub fn wanting_ns(&self) -> u64 {
        self.wanting.load(Relaxed)
    }

    /// Returns what is known about a processor, if it is stuck.
    pub fn episode(&self, processor: usize) -> Option<Episode> {
        let stay = self.stays.get(processor)?;
        let ns = stay.ns.load(Relaxed);
        (ns != 0).then(|| Episode {
            processor,
            number: stay.count.load(Relaxed),
            ns,
            holder: stay.holder.load(Relaxed),
            tick: stay.tick.load(Relaxed),
            blocked: stay.blocked.load(Relaxed),
            cpu: stay.cpu.load(Relaxed),
        })
    }

    /// Returns all processors that are stuck.
    pub fn episodes(&self) -> impl Iterator<Item = Episode> + '_ {
        (0..self.stays.len()).filter_map(|index| self.episode(index))
    }

    /// Returns how often, and for how many nanoseconds in all, a processor has been stuck.
    pub fn totals(&self, processor: usize) -> (u64, u64) {
        let stay = &self.stays[processor];
        (stay.count.load(Relaxed).into(), stay.total_ns.load(Relaxed))
    }
}

#[cfg(test)]
mod tests;
