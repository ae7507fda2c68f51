//! Lints: conditions that are no errors, but that the operator probably wants to know, each with
//! what to do about it.
//!
//! ```text
//!   monitor (sched)            reporter: a platform thread of its own
//!   notes what is stuck,       raised: explains carriers that are stuck (`stuck`), or that no spare
//!   raises the alarm    ---->          carrier is left (`spares`)
//!   stirs it from its   ---->  else, about once per second: looks at the rest, one file per lint,
//!   rest, each tick                    and rests when the process has been idle for a while
//! ```
//!
//! The parts of the runtime that are looked at do nothing for it but keep counts that they have
//! anyway: nothing is paid at a spawn, a switch or a wake. What a look costs is paid by the
//! reporter, and bounded. The monitor never waits for it.
//!
//! A lint is counted each time it is found ([`totals`]), kept for dumps ([`recent`]) and written to
//! standard error, at most once per [place](report::Report::place) and minute. A lint that is on by
//! default is hardly ever wrong, and its cost cannot be measured. `config/lints.rs` has the table
//! of all, with names and limits.

mod crowds;
mod deaf;
mod descriptors;
mod dropped;
mod growth;
mod kernel;
mod late;
mod pool;
mod report;
mod spares;
mod stacks;
mod stuck;
mod waits;

#[allow(unused_imports)] // without the features that use it
pub(crate) use report::{Recent, recent, totals};

use crate::config::lints::{Lint, Lints, Trace};
use pirn_rt::runtime::Runtime;
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sched::stuck::Episode;
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::start_helper;
use report::Reporter;

const SECOND: u64 = 1_000_000_000;
/// The longest time between two looks.
const LONGEST_PERIOD_NS: u64 = SECOND;
/// The stack of the reporter, which unwinds other threads.
const STACK: usize = 256 << 10;

/// Starts the reporter. If there is no thread for it, the program runs without.
pub(crate) fn start(runtime: &'static Runtime, lints: Lints) {
    if !lints.any() {
        return;
    }
    let limit = |lint| lints.limit(lint).unwrap_or(u64::MAX);
    let (stuck, spares) = (limit(Lint::StuckCarrier), limit(Lint::SparesExhausted));
    runtime.stuck.report_after(stuck, spares);
    let _ = start_helper("pirn-lints", STACK, move || run(Watch::new(runtime, lints)));
}

/// Forgets what was found in the parent process.
///
/// # Safety
/// In the child of a fork that has no runtime yet.
pub(crate) unsafe fn after_fork() {
    // SAFETY: the caller's contract.
    unsafe { report::after_fork() };
}

/// What a look is given.
struct Context<'a> {
    runtime: &'static Runtime,
    /// The time since the last look, as far as the reporter and the process ran.
    step: u64,
    reporter: &'a mut Reporter,
}

/// A lint that is looked for now and then.
trait Look: Send {
    fn look(&mut self, context: &mut Context<'_>);
}

/// The reporter's memory.
struct Watch {
    runtime: &'static Runtime,
    lints: Lints,
    reporter: Reporter,
    looks: Vec<Box<dyn Look>>,
    /// The time between two looks.
    period: u64,
    /// For how long there are looks after the process has become idle: until all that can last has
    /// lasted long enough.
    patience: u64,
    /// The stays that have been reported, by processor.
    explained: Vec<u32>,
    /// That no spare carrier is left has been reported.
    exhausted: bool,
}

impl Watch {
    fn new(runtime: &'static Runtime, lints: Lints) -> Watch {
        let mut looks: Vec<Box<dyn Look>> = Vec::new();
        if let Some(limit) = lints.limit(Lint::PoolFull) {
            looks.push(Box::new(pool::Pool::new(limit)));
        }
        if let Some(many) = lints.limit(Lint::CrowdedLock) {
            looks.push(Box::new(crowds::Crowds::new(many)));
        }
        if let Some(limit) = lints.limit(Lint::LongRunnable) {
            looks.push(Box::new(late::Late::new(runtime, limit)));
        }
        if let Some(percent) = lints.limit(Lint::DeepStack) {
            looks.push(Box::new(stacks::Stacks::new(percent)));
        }
        if let Some(least) = lints.limit(Lint::DroppedEvents) {
            looks.push(Box::new(dropped::Dropped::new(least)));
        }
        if let Some(limit) = lints.limit(Lint::GrowingPlace) {
            looks.push(Box::new(growth::Growth::new(limit)));
        }
        if let Some(limit) = lints.limit(Lint::DeafMember) {
            looks.push(Box::new(deaf::Deaf::new(limit)));
        }
        if let Some(percent) = lints.limit(Lint::FewDescriptors) {
            looks.push(Box::new(descriptors::Descriptors::new(percent)));
        }
        let times = [Lint::PoolFull, Lint::LongRunnable, Lint::DeafMember];
        let times = times.into_iter().filter_map(|lint| lints.limit(lint));
        Watch {
            runtime,
            lints,
            reporter: Reporter::new(),
            looks,
            period: times.clone().fold(LONGEST_PERIOD_NS, u64::min),
            patience: times.fold(0, u64::max) + 2 * SECOND,
            explained: vec![0; runtime.processors.count()],
            exhausted: false,
        }
    }

    /// Reports carriers that are stuck, and that there is none left.
    fn explain(&mut self) {
        let limit = self.lints.limit(Lint::StuckCarrier).unwrap_or(u64::MAX);
        let stuck = self.runtime.stuck.episodes().filter(|e| e.ns >= limit);
        for episode in stuck.collect::<Vec<Episode>>() {
            let explained = &mut self.explained[episode.processor];
            let wanted = || self.lints.wants(self.runtime, &episode, limit);
            let is_news = *explained != episode.number && wanted();
            if !is_news {
                continue;
            }
            if let Some(report) = stuck::explain(self.runtime, &episode, self.lints.trace) {
                *explained = episode.number;
                self.reporter.report(report);
            }
        }
        let limit = self.lints.limit(Lint::SparesExhausted);
        let wanting = self.runtime.stuck.wanting_ns();
        let exhausted = limit.is_some_and(|limit| wanting >= limit);
        if exhausted && !self.exhausted {
            self.reporter
                .report_any(spares::explain(self.runtime, wanting));
        }
        self.exhausted = exhausted;
    }

    /// Looks at everything else, `step` ns after the last look.
    fn look(&mut self, step: u64) {
        let mut context = Context {
            runtime: self.runtime,
            step,
            reporter: &mut self.reporter,
        };
        for look in &mut self.looks {
            look.look(&mut context);
        }
    }
}

impl Lints {
    /// Returns whether a carrier that has been stuck for the limit is to be reported.
    ///
    /// A thread that computes must have had a CPU for half of that time: on a machine under load it
    /// may only wait for one. Where nothing is preempted, or nobody waits, it may compute, unless
    /// the operator has asked.
    fn wants(&self, runtime: &Runtime, episode: &Episode, limit: u64) -> bool {
        let preempts = runtime.settings.slice_ns > 0;
        let expected = || !preempts || late::runnable(runtime) == 0;
        let computes = || {
            let asked_for = self.trace != Trace::Line;
            episode.cpu >= limit / 2 && (asked_for || !expected())
        };
        episode.blocked || computes()
    }
}

fn run(mut watch: Watch) {
    valgrind::note_platform_thread();
    let runtime = watch.runtime;
    let mut last = sys::now();
    let mut switches = runtime.processors.switches();
    let mut idle = 0;
    loop {
        let alarm = &runtime.stuck.alarm;
        if idle > watch.patience {
            alarm.rest();
            (last, idle) = (sys::now(), 0);
        } else {
            alarm.nap(Deadline::from_nanos(last + watch.period));
        }
        watch.explain();
        let now = sys::now();
        if now < last + watch.period {
            continue;
        }
        // After a stop of the process, or of the machine, nothing has lasted longer for that.
        let step = (now - last).min(2 * watch.period);
        last = now;
        watch.look(step);
        let before = core::mem::replace(&mut switches, runtime.processors.switches());
        idle = match before == switches && runtime.all_idle() {
            true => idle + step,
            false => 0,
        };
    }
}
