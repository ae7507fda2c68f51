//! A run that failed, and the least that makes it fail, for a person.

use crate::run::Report;
use crate::schedule::Switch;
use crate::world::Outcome;
use core::fmt;

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
    /// The run with these switches only, or else the run itself once more, with stacks.
    pub again: Report,
    /// What became of the seed in a fresh process.
    pub confirmed: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Failure {
            report,
            needed,
            again,
            confirmed,
            ..
        } = self;
        write!(f, "seed {} fails ({}): ", report.seed, report.strategy)?;
        match &report.outcome {
            Outcome::Passed => write!(f, "passed")?,
            Outcome::Panicked(message) => write!(f, "{message}")?,
            Outcome::Deadlock => write!(f, "all threads wait: a deadlock")?,
            Outcome::TooLong => write!(f, "{} points, and no end", report.points)?,
        }
        for panic in &report.panics {
            match &report.outcome {
                Outcome::Panicked(message) if *message == panic.message => {
                    write!(f, "\n  at {}", panic.place)?;
                }
                _ => write!(f, "\n  panic at {panic}")?,
            }
        }
        for call in &report.refused {
            write!(f, "\n  refused: {call}")?;
        }
        write!(f, "\n  {confirmed}")?;
        let all = report.switches.len();
        match needed {
            None => write!(f, "\n  {all} switches, of which these are the first:")?,
            Some(needed) => {
                let left = needed.len();
                write!(f, "\n  shrunk from {all} switches to {left}:")?;
            }
        }
        // A replay has the same switches; the run itself may have thousands.
        for (switch, place) in again.switches.iter().zip(&again.places).take(MOST) {
            let Switch { from, to, kind, .. } = switch;
            let [from, to] = [from, to].map(|number| thread(again, *number));
            write!(f, "\n    {from} {} -> {to}", known(place))?;
            if let Some(kind) = kind {
                let verb = if switch.waits { "waits after" } else { "at" };
                write!(f, " ({verb} {kind:?})")?;
            }
        }
        if report.outcome == Outcome::Deadlock {
            write!(f, "\n  the threads wait:")?;
            for (number, it) in (0..)
                .zip(&again.threads)
                .filter(|(_, it)| !it.place.is_empty())
            {
                let who = thread(again, number);
                write!(f, "\n    {who} {}", known(&it.place))?;
            }
        }
        write!(f, "\n  again: PIRN_SIM={}", report.seed)?;
        if let Some(needed) = needed {
            let list: Vec<_> = needed.iter().map(ToString::to_string).collect();
            write!(f, " PIRN_SIM_SCHEDULE='{}'", list.join(","))?;
        }
        write!(
            f,
            " and the name of the test\n  each step: PIRN_SIM_TRACE=1, for Perfetto \
             PIRN_SIM_TRACE=run.json; a stop for gdb and pirn dump: PIRN_SIM_STOP={}",
            again.trace.len()
        )
    }
}

/// The most switches that are shown.
const MOST: usize = 20;

fn known(place: &str) -> &str {
    if place.is_empty() {
        "before its first point"
    } else {
        place
    }
}

/// Returns a thread's number and name.
pub(crate) fn thread(report: &Report, number: u32) -> String {
    let name = report
        .threads
        .get(number as usize)
        .map_or("", |it| &it.name);
    match name {
        "" => format!("thread {number}"),
        name => format!("thread {number} \"{name}\""),
    }
}
