//! The runs of a test: a strategy for each seed, the check that runs are alike, and what is left of
//! a failure.

use crate::claims::{self, Claim};
use crate::failure::Failure;
use crate::fresh::{self, Name, Runner};
use crate::run::{self, Report, Test};
use crate::schedule::{self, Switch};
use crate::strategy::{Census, Strategy};
use crate::world::{self, Options, Outcome, Step};
use crate::{seeds, trace};
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::collections::HashSet;
use std::sync::Arc;

/// How a test is simulated.
#[derive(Clone, Debug)]
pub struct Sim {
    seeds: Range<u64>,
    /// Otherwise each seed draws one.
    strategy: Option<Strategy>,
    /// What is the same for all seeds.
    options: Options,
}

impl Default for Sim {
    fn default() -> Sim {
        Sim {
            seeds: 0..100,
            strategy: None,
            options: Options {
                places: 8,
                most_points: 2_000_000,
                ..Options::default()
            },
        }
    }
}

/// What the runs of a test were, all of which have passed.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    /// The number of runs.
    pub runs: u64,
    /// How many of them had a schedule that no run before had. If most have, more seeds find more.
    pub schedules: u64,
    /// Points, in all runs.
    pub points: u64,
    /// How many of them were in instrumented code.
    pub instrumented: u64,
    /// Switches from one thread to another, in all runs.
    pub switches: u64,
    /// Virtual time, of all runs.
    pub time: Duration,
    /// What the program has claimed of itself.
    pub claims: Vec<Claim>,
}

impl Sim {
    /// Returns a simulation of 100 seeds.
    pub fn new() -> Sim {
        Sim::default()
    }

    /// Sets the seeds, each of which is a run.
    #[must_use]
    pub fn seeds(mut self, seeds: Range<u64>) -> Sim {
        self.seeds = seeds;
        self
    }

    /// Sets the way to choose threads. Otherwise each seed draws one.
    #[must_use]
    pub fn strategy(mut self, strategy: Strategy) -> Sim {
        self.strategy = Some(strategy);
        self
    }

    /// Sets how many of the instrumented loads, stores and edges there are for a point, on average;
    /// 0: none of them is a point.
    #[must_use]
    pub fn places(mut self, mean: u32) -> Sim {
        self.options.places = mean;
        self
    }

    /// Lets threads pause at one point in `one_in`, for at most `longest`, as threads and processes
    /// do whose machine is busy or suspended.
    #[must_use]
    pub fn pauses(mut self, one_in: u64, longest: Duration) -> Sim {
        self.options.pauses = one_in;
        self.options.longest_pause = longest.as_nanos() as u64;
        self
    }

    /// Lets one wait of a lock or condition variable in `one_in` return without a wake, as POSIX
    /// and
    /// `std` permit.
    #[must_use]
    pub fn spurious_wakes(mut self, one_in: u64) -> Sim {
        self.options.spurious_wakes = one_in;
        self
    }

    /// Lets one `pthread_create` in `one_in` fail (`EAGAIN`), as at a limit of threads. With it
    /// `std::thread::spawn` panics, and `Builder::spawn` returns the error.
    #[must_use]
    pub fn failing_spawns(mut self, one_in: u64) -> Sim {
        self.options.failing_spawns = one_in;
        self
    }

    /// Sets after how many points a run fails. Otherwise 2,000,000.
    #[must_use]
    pub fn most_points(mut self, points: u64) -> Sim {
        self.options.most_points = points;
        self
    }

    /// Lets runs pass in which a thread panics that no other thread joins: the program catches
    /// panics itself, or restarts its threads.
    #[must_use]
    pub fn panics_allowed(mut self) -> Sim {
        self.options.panics_allowed = true;
        self
    }

    /// Runs the test with each seed, and prints a [`Summary`].
    ///
    /// # Panics
    /// If a run fails: with its seed, and the switches that matter. If what
    /// [`sometimes`](crate::sometimes) holds never does. If two runs of the first seed differ. If
    /// there can be no simulation in this process.
    #[track_caller]
    pub fn check(&self, test: impl Fn() + Send + Sync + 'static) {
        let summary = match self.try_check(test) {
            Ok(summary) => summary,
            Err(failure) => panic!("{failure}"),
        };
        println!("{summary}");
        let mut claims = summary.claims.iter();
        let never = claims.find(|it| it.is_sometimes && it.held == 0);
        if let Some(claim) = never.filter(|_| summary.runs > 1) {
            panic!("sometimes: {}: never in {} runs", claim.name, summary.runs);
        }
    }

    /// Does what [`check`](Self::check) does, and returns a failure.
    ///
    /// # Errors
    /// The first seed that fails.
    ///
    /// # Panics
    /// As for [`check`](Self::check), but for runs that fail.
    pub fn try_check(
        &self,
        test: impl Fn() + Send + Sync + 'static,
    ) -> Result<Summary, Box<Failure>> {
        let test: Test = Arc::new(test);
        let name = fresh::next(&test);
        let asked = seeds::asked(&self.seeds);
        // By its threads and points the other seeds' strategies are drawn.
        let (runner, first) = self.first(name, &test);
        let census = first.census();
        let mut first = Some(first).filter(|_| !asked.one);
        let (mut summary, mut orders) = (Summary::default(), HashSet::new());
        for seed in asked.seeds.clone() {
            let report = match first.take_if(|first| first.seed == seed) {
                Some(report) => report,
                None => {
                    let mut options = self.options(seed, &census);
                    if let Some(switches) = &asked.schedule {
                        options.strategy = Strategy::Replay(switches.clone());
                    }
                    options.stop = asked.stop;
                    options.trace = asked.trace.is_some();
                    options.stacks = options.trace;
                    runner.run(&options)
                }
            };
            if let Some(to) = &asked.trace {
                trace::show(&report, to);
            }
            if report.outcome != Outcome::Passed {
                let failure = self.failure(report, summary.runs, &census, &runner);
                return Err(Box::new(failure));
            }
            summary.add(&report, orders.insert(report.order));
        }
        Ok(summary)
    }

    /// Looks for what matters in a run that has failed.
    fn failure(
        &self,
        mut report: Report,
        passed: u64,
        census: &Census,
        runner: &Runner<'_>,
    ) -> Failure {
        let options = Options {
            strategy: report.strategy.clone(),
            ..self.options(report.seed, census)
        };
        let mut needed = shrunk(&report, &options, runner);
        let fresh = runner.fresh().filter(|_| needed.is_none());
        // If it depends on earlier runs, it may fail by itself in processes of its own.
        let alone = fresh.as_ref().map(|fresh| (fresh, fresh.run(&options)));
        let runner = match alone.filter(|(_, alone)| is_like(alone, &report)) {
            Some((fresh, alone)) => {
                (needed, report) = (shrunk(&alone, &options, fresh), alone);
                fresh
            }
            None => runner,
        };
        let strategy = match &needed {
            Some(needed) => Strategy::Replay(needed.clone()),
            None => report.strategy.clone(),
        };
        let again = Options {
            strategy,
            trace: true,
            stacks: true,
            ..options.clone()
        };
        Failure {
            again: runner.run(&again),
            confirmed: runner.confirmed(
                &self.options(self.seeds.start, &unknown()),
                &options,
                &report,
            ),
            report,
            passed,
            needed,
        }
    }

    /// Runs the test once.
    ///
    /// # Panics
    /// As for [`try_check`](Self::try_check).
    pub fn run(&self, seed: u64, test: impl Fn() + Send + Sync + 'static) -> Report {
        fresh::must(&self.options(seed, &unknown()), &(Arc::new(test) as Test))
    }

    /// Runs the first seed, twice to see that both runs are alike: in this process or, if they are
    /// not, each in a process of its own, as all other seeds then.
    fn first<'a>(&self, name: Option<Name>, test: &'a Test) -> (Runner<'a>, Report) {
        let options = Options {
            trace: true,
            ..self.options(self.seeds.start, &unknown())
        };
        let mut runner = Runner {
            test,
            name,
            is_fresh: false,
        };
        // What is made lazily, in statics and in thread-locals of the carrier, is made now.
        runner.run(&options);
        let differ = match alike(&runner, &options) {
            Ok(report) => return (runner, report),
            Err(differ) => differ,
        };
        runner.is_fresh = true;
        if runner.name.is_none() {
            panic!("{differ}");
        }
        match alike(&runner, &options) {
            Ok(report) => (runner, report),
            Err(differ) => panic!("{differ}, each in a process of its own"),
        }
    }

    fn options(&self, seed: u64, census: &Census) -> Options {
        let drawn = || Strategy::drawn(seed, census);
        Options {
            seed,
            strategy: self.strategy.clone().unwrap_or_else(drawn),
            ..self.options.clone()
        }
    }
}

/// Returns the census of a program that has not run: some 300 points, as small tests have.
fn unknown() -> Census {
    Arc::new([(0, 300)])
}

/// Runs a seed twice. Returns the report, or how the runs differ.
fn alike(runner: &Runner<'_>, options: &Options) -> Result<Report, String> {
    let [one, other] = [runner.run(options), runner.run(options)];
    if one.hash == other.hash {
        return Ok(one);
    }
    let mut steps = one.trace.iter().zip(&other.trace);
    let at = steps.position(|(one, other)| one != other);
    let at = at.unwrap_or(one.trace.len().min(other.trace.len()));
    let near = |trace: &[Step]| {
        format!(
            "{:?}",
            &trace[at.saturating_sub(3)..(at + 1).min(trace.len())]
        )
    };
    Err(format!(
        "pirn: two runs of seed {} differ, so seeds mean nothing. Step {at} of {} and {}: {} and {}",
        options.seed,
        one.trace.len(),
        other.trace.len(),
        near(&one.trace),
        near(&other.trace),
    ))
}

/// Returns the switches without which the run does not fail.
fn shrunk(report: &Report, options: &Options, runner: &Runner<'_>) -> Option<Vec<Switch>> {
    schedule::shrunk(&report.switches, |some| {
        let options = Options {
            strategy: Strategy::Replay(some.to_vec()),
            ..options.clone()
        };
        is_like(&runner.run(&options), report)
    })
}

/// Whether two runs have failed in the same way, with whatever messages.
fn is_like(one: &Report, other: &Report) -> bool {
    core::mem::discriminant(&one.outcome) == core::mem::discriminant(&other.outcome)
}

impl Summary {
    fn add(&mut self, report: &Report, is_new: bool) {
        self.runs += 1;
        self.schedules += u64::from(is_new);
        self.points += report.points;
        self.instrumented += report.instrumented;
        self.switches += report.switches.len() as u64;
        self.time += report.time;
        claims::add(&mut self.claims, &report.claims);
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Summary {
            runs,
            schedules,
            points,
            instrumented,
            switches,
            time,
            claims,
        } = self;
        write!(
            f,
            "pirn: {runs} runs, {schedules} different schedules, {points} points, {switches} \
             switches, {} virtual seconds",
            time.as_secs()
        )?;
        if *instrumented == 0 {
            f.write_str("\n  no points at atomic operations: `cargo pirn sim test` has them")?;
        }
        for Claim {
            name,
            made,
            held,
            is_sometimes,
        } in claims
        {
            let kind = if *is_sometimes { "sometimes" } else { "always" };
            write!(f, "\n  {kind} {name}: {held} of {made}")?;
        }
        Ok(())
    }
}

/// Returns whether the calling thread is simulated.
pub fn is_simulated() -> bool {
    run::is_inside()
}

/// Returns whether a fault of this probability happens, by the seed: for faults that a program
/// plays itself. Never outside of a simulation.
pub fn chance(probability: f64) -> bool {
    run::is_inside() && world::draw(|streams| streams.data.chance(probability)).is_some_and(|it| it)
}
