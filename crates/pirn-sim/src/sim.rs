//! The runs of a test: a strategy for each seed, the check that runs are alike, and what is left of
//! a failure.

use crate::run::{self, Report, Test};
use crate::schedule::{Switch, shrunk};
use crate::strategy::Strategy;
use crate::world::{self, Options, Outcome};
use core::fmt;
use core::ops::Range;
use core::time::Duration;
use std::env;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

/// How a test is simulated.
#[derive(Clone, Debug)]
pub struct Sim {
    seeds: Range<u64>,
    strategy: Option<Strategy>,
    places: u32,
    pauses: u64,
    longest_pause: Duration,
    most_points: u64,
}

impl Default for Sim {
    fn default() -> Sim {
        Sim {
            seeds: 0..100,
            strategy: None,
            places: 8,
            pauses: 0,
            longest_pause: Duration::ZERO,
            most_points: 2_000_000,
        }
    }
}

/// A run that failed, and the least that makes it fail.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The run.
    pub report: Report,
    /// How many seeds had passed.
    pub passed: u64,
    /// The switches without which it does not fail. `None`: the schedule alone did not make it fail
    /// again.
    pub needed: Option<Vec<Switch>>,
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
        self.places = mean;
        self
    }

    /// Lets threads pause at one point in `one_in`, for at most `longest`, as threads and processes
    /// do whose machine is busy or suspended.
    #[must_use]
    pub fn pauses(mut self, one_in: u64, longest: Duration) -> Sim {
        (self.pauses, self.longest_pause) = (one_in, longest);
        self
    }

    /// Sets after how many points a run fails. Otherwise 2,000,000.
    #[must_use]
    pub fn most_points(mut self, points: u64) -> Sim {
        self.most_points = points;
        self
    }

    /// Runs the test with each seed.
    ///
    /// # Panics
    /// If a run fails: with its seed, and the switches that matter. If two runs of the first seed
    /// differ. If there can be no simulation in this process.
    pub fn check(&self, test: impl Fn() + Send + Sync + 'static) {
        if let Err(failure) = self.try_check(test) {
            panic!("{failure}");
        }
    }

    /// Does what [`check`](Self::check) does, and returns a failure.
    ///
    /// # Errors
    /// The first seed that fails.
    ///
    /// # Panics
    /// As for [`check`](Self::check), but for runs that fail.
    pub fn try_check(&self, test: impl Fn() + Send + Sync + 'static) -> Result<(), Box<Failure>> {
        let test: Test = Arc::new(test);
        let mut points = None;
        for (passed, seed) in (0..).zip(seeds(self.seeds.clone())) {
            let report = match points {
                Some(points) => must(&self.options(seed, points), &test),
                None => self.first(seed, &test),
            };
            points = points.or(Some(report.points));
            if report.outcome != Outcome::Passed {
                let needed = self.shrunk(&report, &test);
                return Err(Box::new(Failure {
                    report,
                    passed,
                    needed,
                }));
            }
        }
        Ok(())
    }

    /// Runs the test once.
    ///
    /// # Panics
    /// As for [`try_check`](Self::try_check).
    pub fn run(&self, seed: u64, test: impl Fn() + Send + Sync + 'static) -> Report {
        must(&self.options(seed, 300), &(Arc::new(test) as Test))
    }

    /// Runs the first seed, twice to see that both runs are alike.
    fn first(&self, seed: u64, test: &Test) -> Report {
        let options = Options {
            trace: true,
            ..self.options(seed, 300)
        };
        // What is made lazily, in statics and in thread-locals of the carrier, is made now.
        must(&options, test);
        let [one, other] = [must(&options, test), must(&options, test)];
        if one.hash != other.hash {
            let mut steps = one.trace.iter().zip(&other.trace);
            let at = steps.position(|(one, other)| one != other);
            let at = at.unwrap_or(one.trace.len().min(other.trace.len()));
            panic!(
                "pirn: two runs of seed {seed} differ, so seeds mean nothing. Step {at} of {} and {}: \
                 {:?} and {:?}",
                one.trace.len(),
                other.trace.len(),
                &one.trace[at.saturating_sub(3)..(at + 1).min(one.trace.len())],
                &other.trace[at.saturating_sub(3)..(at + 1).min(other.trace.len())],
            );
        }
        one
    }

    fn options(&self, seed: u64, points: u64) -> Options {
        let drawn = || Strategy::drawn(seed, points);
        Options {
            seed,
            strategy: self.strategy.clone().unwrap_or_else(drawn),
            places: self.places,
            pauses: self.pauses,
            longest_pause: self.longest_pause.as_nanos() as u64,
            most_points: self.most_points,
            trace: false,
        }
    }

    fn shrunk(&self, report: &Report, test: &Test) -> Option<Vec<Switch>> {
        let kind = core::mem::discriminant(&report.outcome);
        shrunk(&report.switches, |some| {
            let options = Options {
                strategy: Strategy::Replay(some.to_vec()),
                ..self.options(report.seed, 0)
            };
            core::mem::discriminant(&must(&options, test).outcome) == kind
        })
    }
}

/// Returns the seeds that the user asks for: one (`PIRN_SIM=17`), so many
/// (`PIRN_SIM_SEEDS=100000`), or so many from a random one on (`PIRN_SIM_SEEDS=random`); otherwise
/// the test's own.
///
/// # Panics
/// If a variable has another value.
fn seeds(own: Range<u64>) -> Range<u64> {
    let number = |name: &str, text: &str| match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) => panic!("pirn: {name}={text}: a number is needed"),
    };
    if let Ok(text) = env::var("PIRN_SIM") {
        let seed = number("PIRN_SIM", &text);
        return seed..seed + 1;
    }
    match env::var("PIRN_SIM_SEEDS").as_deref() {
        Err(_) => own,
        Ok("random") => {
            let first = RandomState::new().hash_one(0) >> 32;
            first..first + (own.end - own.start)
        }
        Ok(text) => own.start..own.start + number("PIRN_SIM_SEEDS", text),
    }
}

fn must(options: &Options, test: &Test) -> Report {
    match run::run(options, test) {
        Ok(report) => report,
        Err(error) => panic!("pirn: no simulation: {error}"),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure { report, .. } = self;
        write!(f, "seed {} fails ({:?}): ", report.seed, report.strategy)?;
        match &report.outcome {
            Outcome::Passed => write!(f, "passed")?,
            Outcome::Panicked(message) => write!(f, "{message}")?,
            Outcome::Deadlock => write!(f, "all threads wait: a deadlock")?,
            Outcome::TooLong => write!(f, "{} points, and no end", report.points)?,
        }
        let panics = report
            .panics
            .iter()
            .map(|panic| format!("\n  panic at {panic}"));
        panics.into_iter().try_for_each(|line| f.write_str(&line))?;
        match &self.needed {
            None => write!(f, "\n  {} switches", report.switches.len())?,
            Some(needed) => {
                let all = report.switches.len();
                write!(f, "\n  shrunk from {all} switches to {}:", needed.len())?;
                for Switch {
                    from, at, to, kind, ..
                } in needed
                {
                    let kind = kind.map_or("its beginning".into(), |it| format!("{it:?}"));
                    write!(f, "\n    thread {from}, point {at} ({kind}) -> thread {to}")?;
                }
            }
        }
        write!(
            f,
            "\n  again: PIRN_SIM={} and the name of the test",
            report.seed
        )
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
