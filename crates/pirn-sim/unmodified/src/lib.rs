//! Runs a test of crates that know nothing of a simulation.

use pirn_sim::{Outcome, Sim};
use std::time::Instant;

/// Runs a test with each of these seeds, and some of them twice more: both times the same happens.
/// Prints how fast that was.
///
/// # Panics
/// If a run fails, or two of a seed differ.
pub fn check(name: &str, seeds: u64, test: impl Fn() + Send + Sync + Copy + 'static) {
    let run = |seed| {
        let report = Sim::new().run(seed, test);
        assert_eq!(report.outcome, Outcome::Passed, "seed {seed}: {report:?}");
        assert!(report.refused.is_empty(), "{:?}", report.refused);
        report
    };
    run(0); // What is made lazily is made now.
    for seed in 0..5 {
        let hashes = [(); 2].map(|()| run(seed).hash);
        assert_eq!(hashes[0], hashes[1], "seed {seed}");
    }
    let begin = Instant::now();
    let points: u64 = (0..seeds).map(|seed| run(seed).points).sum();
    let rate = seeds as f64 / begin.elapsed().as_secs_f64();
    println!(
        "{name}: {rate:.0} runs per second, {} points each",
        points / seeds
    );
}
