//! Diagnostics: conditions that are no errors, but that the operator probably wants to know, each
//! with what to do about it.
//!
//! ```text
//!   monitor (sched)            reporter: a platform thread of its own
//!   notes what is stuck,       woken: explains the carriers that are stuck, or that no spare
//!   wakes the reporter  ---->         carrier is left (`carriers`)
//!   ends its rest       ---->  about once per second: looks at the pool and at places of
//!   at each tick               spawning (`counts`); rests once the process has been idle
//! ```
//!
//! The reporter only reads counts that the runtime keeps anyway: a spawn, a switch and a wake pay
//! nothing. The reporter pays for a look, whose cost is bounded. The monitor never waits for it.
//!
//! A diagnostic is counted each time it is found, kept for dumps ([`findings`]) and written to
//! standard error, at most once per [site](report::Report::site) and minute.
//!
//! [`findings`]: crate::findings

mod carriers;
mod counts;
mod report;
mod settings;

pub use settings::{Settings, VARIABLES};

use crate::findings::Kind;
use counts::{Growth, Pool};
use pirn_rt::sanitizer::valgrind;
use pirn_rt::sched::runtime::Runtime;
use pirn_rt::sched::stuck::Episode;
use pirn_rt::sys;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::start_helper;
use report::Reporter;
use settings::Trace;

const SECOND: u64 = 1_000_000_000;
/// The longest time between two looks.
const LONGEST_PERIOD_NS: u64 = SECOND;
/// The stack of the reporter, which unwinds other threads.
const STACK: usize = 256 << 10;

/// Starts the reporter. If there is no thread for it, the program runs without.
pub fn start(runtime: &'static Runtime, settings: Settings) {
    if !settings.any() {
        return;
    }
    let limit = |kind| settings.limit(kind).unwrap_or(u64::MAX);
    let (stuck, spares) = (limit(Kind::StuckCarrier), limit(Kind::SparesExhausted));
    runtime.stuck.report_after(stuck, spares);
    let _ = start_helper("pirn-reporter", STACK, move || {
        run(Watch::new(runtime, settings))
    });
}

/// The reporter's memory.
struct Watch {
    runtime: &'static Runtime,
    settings: Settings,
    reporter: Reporter,
    pool: Option<Pool>,
    sites: Option<Growth>,
    /// The time between two looks.
    period: u64,
    /// For how long the reporter looks after the process has become idle: until each condition that
    /// can last has lasted for its limit.
    patience: u64,
    /// The episodes that have been reported, by processor.
    explained: Vec<u32>,
    /// Whether it has been reported that no spare carrier is left.
    exhausted: bool,
}

impl Watch {
    fn new(runtime: &'static Runtime, settings: Settings) -> Watch {
        let longest = settings.limit(Kind::PoolFull);
        Watch {
            runtime,
            settings,
            reporter: Reporter::default(),
            pool: longest.map(Pool::new),
            sites: settings.limit(Kind::GrowingSite).map(Growth::new),
            period: longest.map_or(LONGEST_PERIOD_NS, |limit| limit.min(LONGEST_PERIOD_NS)),
            patience: longest.unwrap_or(0) + 2 * SECOND,
            explained: vec![0; runtime.processors.count()],
            exhausted: false,
        }
    }

    /// Reports stuck carriers, and that no spare carrier is left.
    fn explain(&mut self) {
        let limit = self.settings.limit(Kind::StuckCarrier).unwrap_or(u64::MAX);
        let stuck = self.runtime.stuck.episodes().filter(|e| e.ns >= limit);
        for episode in stuck.collect::<Vec<Episode>>() {
            let explained = &mut self.explained[episode.processor];
            let wanted = || self.settings.wants(self.runtime, &episode, limit);
            let is_news = *explained != episode.number && wanted();
            if !is_news {
                continue;
            }
            if let Some(report) =
                carriers::explain_stuck(self.runtime, &episode, self.settings.trace)
            {
                *explained = episode.number;
                self.reporter.report(report);
            }
        }
        let limit = self.settings.limit(Kind::SparesExhausted);
        let wanting = self.runtime.stuck.wanting_ns();
        let exhausted = limit.is_some_and(|limit| wanting >= limit);
        if exhausted
            && !self.exhausted
            && let Some(report) = carriers::explain_exhausted(self.runtime, wanting)
        {
            self.reporter.report(report);
        }
        self.exhausted = exhausted;
    }

    /// Looks at everything else, `step` ns after the last look.
    fn look(&mut self, step: u64) {
        let reporter = &mut self.reporter;
        if let Some(pool) = &mut self.pool {
            pool.look(self.runtime, step, reporter);
        }
        if let Some(sites) = &mut self.sites {
            sites.look(reporter);
        }
    }
}

impl Settings {
    /// Returns whether a carrier that has been stuck for the limit is to be reported.
    ///
    /// A thread that computes must have had a CPU for half of that time: on a machine under load it
    /// may only wait for one. Where nothing is preempted, or no thread waits, it may compute,
    /// unless the operator has asked.
    fn wants(&self, runtime: &Runtime, episode: &Episode, limit: u64) -> bool {
        let preempts = runtime.settings.slice_ns > 0;
        let expected = || !preempts || runtime.runnable() == 0;
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
        if idle > watch.patience {
            runtime.stuck.rest();
            (last, idle) = (sys::now(), 0);
        } else {
            runtime.stuck.nap(Deadline::from_nanos(last + watch.period));
        }
        watch.explain();
        let now = sys::now();
        if now < last + watch.period {
            continue;
        }
        // The time for which the process, or the machine, was stopped does not count.
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
