//! Diagnostics: conditions that are no errors, but that the operator probably wants to know, each
//! with what to do about it.
//!
//! ```text
//!   monitor (sched)            reporter: a platform thread of its own
//!   notes what is stuck,       woken: explains the carriers that are stuck (`stuck_carrier`), or
//!   wakes the reporter  ---->         that no spare carrier is left (`spares_exhausted`)
//!   ends its rest       ---->  about once per second: looks at the others (`pool_full`,
//!   at each tick               `growing_site`); rests once the process has been idle for a while
//! ```
//!
//! The reporter only reads counts that the runtime keeps anyway: a spawn, a switch and a wake pay
//! nothing. The reporter pays for a look, whose cost is bounded. The monitor never waits for it.
//!
//! A diagnostic is counted each time it is found, kept for dumps ([`findings`]) and written to
//! standard error, at most once per [site](report::Report::site) and minute.
//!
//! [`findings`]: crate::findings

mod growing_site;
mod in_kernel;
mod pool_full;
mod report;
mod settings;
mod spares_exhausted;
mod stuck_carrier;

pub use settings::{Settings, VARIABLES};

use crate::findings::Kind;
use pirn_rt::runtime::Runtime;
use pirn_rt::sanitizer::valgrind;
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

/// What a look is given.
struct Context<'a> {
    runtime: &'static Runtime,
    /// The time since the last look, as far as the reporter and the process ran.
    step: u64,
    reporter: &'a mut Reporter,
}

/// A diagnostic that is looked for now and then.
trait Look: Send {
    fn look(&mut self, context: &mut Context<'_>);
}

/// The reporter's memory.
struct Watch {
    runtime: &'static Runtime,
    settings: Settings,
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
    fn new(runtime: &'static Runtime, settings: Settings) -> Watch {
        let mut looks: Vec<Box<dyn Look>> = Vec::new();
        if let Some(limit) = settings.limit(Kind::PoolFull) {
            looks.push(Box::new(pool_full::Pool::new(limit)));
        }
        if let Some(limit) = settings.limit(Kind::GrowingSite) {
            looks.push(Box::new(growing_site::Growth::new(limit)));
        }
        let longest = settings.limit(Kind::PoolFull);
        Watch {
            runtime,
            settings,
            reporter: Reporter::new(),
            looks,
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
                stuck_carrier::explain(self.runtime, &episode, self.settings.trace)
            {
                *explained = episode.number;
                self.reporter.report(report);
            }
        }
        let limit = self.settings.limit(Kind::SparesExhausted);
        let wanting = self.runtime.stuck.wanting_ns();
        let exhausted = limit.is_some_and(|limit| wanting >= limit);
        if exhausted && !self.exhausted {
            self.reporter
                .report_any(spares_exhausted::explain(self.runtime, wanting));
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

impl Settings {
    /// Returns whether a carrier that has been stuck for the limit is to be reported.
    ///
    /// A thread that computes must have had a CPU for half of that time: on a machine under load it
    /// may only wait for one. Where nothing is preempted, or nobody waits, it may compute, unless
    /// the operator has asked.
    fn wants(&self, runtime: &Runtime, episode: &Episode, limit: u64) -> bool {
        let preempts = runtime.settings.slice_ns > 0;
        let expected = || !preempts || is_nothing_runnable(runtime);
        let computes = || {
            let asked_for = self.trace != Trace::Line;
            episode.cpu >= limit / 2 && (asked_for || !expected())
        };
        episode.blocked || computes()
    }
}

/// Returns whether no thread waits for a carrier.
fn is_nothing_runnable(runtime: &Runtime) -> bool {
    let own = runtime.processors.used().iter().map(|it| it.queue.len());
    own.sum::<usize>() + runtime.injector.len() + runtime.turns.len() == 0
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
