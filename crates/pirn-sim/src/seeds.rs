//! Which seeds a test runs, and what is shown of them: by the test, and by the user's variables.
//!
//! | variable | |
//! |---|---|
//! | `PIRN_SIM=17` | this seed only |
//! | `PIRN_SIM_SEEDS=100000` | so many |
//! | `PIRN_SIM_SEEDS=random` | as many as the test says, from a random one on |
//! | `PIRN_SIM_SCHEDULE=0@13>1,1@6>2` | with `PIRN_SIM`: these switches only |
//! | `PIRN_SIM_TRACE=1` | with `PIRN_SIM`: each step, on standard error |
//! | `PIRN_SIM_TRACE=run.json` | with `PIRN_SIM`: the run for Perfetto, to this file |
//! | `PIRN_SIM_STOP=214` | with `PIRN_SIM`: stops the process before this step |

use crate::schedule::{self, Switch};
use core::ops::Range;
use std::env;
use std::hash::{BuildHasher, RandomState};

/// What the user asks for.
pub(crate) struct Asked {
    pub(crate) seeds: Range<u64>,
    /// One seed, which is to be looked at.
    pub(crate) one: bool,
    /// How its threads are chosen, if that is said.
    pub(crate) schedule: Option<Vec<Switch>>,
    /// Where the trace of the one goes.
    pub(crate) trace: Option<String>,
    /// The step before which the process stops; 0: none.
    pub(crate) stop: u64,
}

/// Reads the variables. `own` are the test's seeds.
///
/// # Panics
/// If a variable has a value without a meaning.
pub(crate) fn asked(own: &Range<u64>) -> Asked {
    let one = variable("PIRN_SIM").map(|text| number("PIRN_SIM", &text));
    let stop = variable("PIRN_SIM_STOP").map_or(0, |text| number("PIRN_SIM_STOP", &text));
    let trace = variable("PIRN_SIM_TRACE");
    let schedule = variable("PIRN_SIM_SCHEDULE").map(|text| match schedule::parsed(&text) {
        Some(switches) => switches,
        None => {
            panic!("pirn: PIRN_SIM_SCHEDULE={text}: switches are needed, such as 0@13>1,1@6w>2")
        }
    });
    assert!(
        one.is_some() || (trace.is_none() && schedule.is_none() && stop == 0),
        "pirn: PIRN_SIM_TRACE, PIRN_SIM_STOP and PIRN_SIM_SCHEDULE need PIRN_SIM, the seed to look at"
    );
    let seeds = match (one, variable("PIRN_SIM_SEEDS").as_deref()) {
        (Some(seed), _) => seed..seed + 1,
        (None, None) => own.clone(),
        (None, Some("random")) => {
            let first = RandomState::new().hash_one(0) >> 32;
            first..first + (own.end - own.start)
        }
        (None, Some(text)) => own.start..own.start + number("PIRN_SIM_SEEDS", text),
    };
    Asked {
        seeds,
        one: one.is_some(),
        schedule,
        trace,
        stop,
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|text| !text.is_empty())
}

fn number(name: &str, text: &str) -> u64 {
    match text.parse() {
        Ok(number) => number,
        Err(_) => panic!("pirn: {name}={text}: a number is needed"),
    }
}
