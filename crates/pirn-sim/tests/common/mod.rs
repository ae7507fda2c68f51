//! What the tests of simulations share.
#![allow(dead_code, reason = "no binary uses all of it")]

use pirn_sim::{Outcome, Report, Sim};
use std::sync::Arc;

/// Checks that a run has passed, and returns its report.
pub fn passes(report: Report) -> Report {
    assert_eq!(report.outcome, Outcome::Passed, "{report:?}");
    report
}

/// Runs the test with a seed, twice, to see that both runs are alike. A run before makes what is
/// made lazily.
pub fn alike(seed: u64, test: impl Fn() + Send + Sync + 'static) -> Report {
    let test = Arc::new(test);
    let [_, one, other] = [(); 3].map(|()| {
        let test = Arc::clone(&test);
        Sim::new().run(seed, move || test())
    });
    assert_eq!(one.hash, other.hash, "{one:?} {other:?}");
    one
}

/// Checks that a test passes, six times in the same way, and with 50 other seeds.
pub fn passes_alike(test: impl Fn() + Copy + Send + Sync + 'static) {
    let first = passes(Sim::new().run(5, test));
    for _ in 0..5 {
        assert_eq!(passes(Sim::new().run(5, test)).hash, first.hash);
    }
    Sim::new().seeds(0..50).check(test);
}
