//! What a program claims of itself, over all runs of a test.

use pirn_rt::lock::Lock;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How often a claim was made, in all runs of a test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// The name that the program has given it.
    pub name: String,
    /// How often.
    pub made: u64,
    /// How often it was true.
    pub held: u64,
    /// Whether it must be true at least once, by [`sometimes`].
    pub is_sometimes: bool,
}

/// The claims of the run.
static CLAIMS: Lock<BTreeMap<String, Claim>> = Lock::new(BTreeMap::new());

/// Claims that something holds each time: an assertion with a name, which the summary counts.
///
/// # Panics
/// If it does not hold.
#[track_caller]
pub fn always(name: &str, holds: bool) {
    note(name, holds, false);
    assert!(holds, "always: {name}");
}

/// Claims that something holds at least once in the runs of a test: that the retry, the full queue,
/// the election happens at all. [`Sim::check`](crate::Sim::check) fails if it never does.
pub fn sometimes(name: &str, holds: bool) {
    note(name, holds, true);
}

fn note(name: &str, holds: bool, is_sometimes: bool) {
    if !crate::is_simulated() {
        return;
    }
    let mut claims = CLAIMS.lock();
    if !claims.contains_key(name) {
        let claim = Claim {
            name: name.to_owned(),
            made: 0,
            held: 0,
            is_sometimes,
        };
        claims.insert(name.to_owned(), claim);
    }
    if let Some(claim) = claims.get_mut(name) {
        claim.made += 1;
        claim.held += u64::from(holds);
    }
}

/// Adds the claims of one run to the claims of all.
pub(crate) fn add(all: &mut Vec<Claim>, some: &[Claim]) {
    for claim in some {
        match all.iter_mut().find(|it| it.name == claim.name) {
            Some(sum) => {
                sum.made += claim.made;
                sum.held += claim.held;
            }
            None => all.push(claim.clone()),
        }
    }
}

/// Returns the claims that were made since the last call.
pub(crate) fn take() -> Vec<Claim> {
    core::mem::take(&mut *CLAIMS.lock()).into_values().collect()
}
