//! What the tests of published bugs have in common.

use pirn_sim::{Failure, Sim};
use std::ops::Range;
use std::sync::Arc;
use std::thread;

/// Returns whether the versions are those without the bugs. Not at compile time: cargo takes both
/// workspaces' copies of this crate for the same.
pub fn is_mended() -> bool {
    std::env::var("CARGO_MANIFEST_DIR").is_ok_and(|it| it.ends_with("mended"))
}

/// Returns whether loads, stores and edges are points (`--places`).
pub fn has_places() -> bool {
    let sum = || assert!((0..100).fold(0, |sum, n| std::hint::black_box(sum + n)) > 0);
    let is = Sim::new().places(1).run(0, sum).points > 50;
    if !is {
        println!("left out: not by `cargo pirn sim test --places`");
    }
    is
}

/// Has the test fail with the old version of a crate, and pass with the mended one.
///
/// # Panics
/// If it does not.
pub fn is_found(bug: &str, sim: Sim, test: impl Fn() + Send + Sync + 'static) {
    let test = Arc::new(test);
    let run = |seeds| {
        let test = Arc::clone(&test);
        sim.clone().seeds(seeds).try_check(move || test()).err()
    };
    if is_mended() {
        if let Some(failure) = run(0..1000) {
            panic!("{bug}, which is mended: {failure}");
        }
        return;
    }
    let failure = run(0..10_000).unwrap_or_else(|| panic!("{bug} is not found"));
    println!("{bug}, by run {}: {failure}", failure.passed + 1);
    if std::env::var_os("NUMBERS").is_some() {
        // Not on the test's thread, where each failure would be confirmed in a fresh process.
        thread::scope(|scope| drop(scope.spawn(|| measure(bug, run))));
    }
}

/// Prints the row of a table.
fn measure(bug: &str, run: impl Fn(Range<u64>) -> Option<Box<Failure>>) {
    let first = |range: u64| {
        let failure = run(range * 1000..(range + 1) * 1000);
        failure.map_or(1000, |failure| failure.passed + 1)
    };
    let mean = (20..32).map(first).sum::<u64>() as f64 / 12.0;
    let (mut seed, mut failures) = (0, Vec::new());
    while failures.len() < 50
        && let Some(failure) = run(seed..1000)
    {
        seed = failure.report.seed + 1;
        failures.push(failure.needed.map(|it| it.len()));
    }
    let mut switches: Vec<_> = failures.iter().flatten().copied().collect();
    switches.sort_unstable();
    println!(
        "| {bug} | {mean:.1} | {} of {} | {:?}, {:?} | {} |",
        failures.len(),
        if failures.len() < 50 { 1000 } else { seed },
        switches.get(switches.len() / 2),
        switches.last(),
        failures.len() - switches.len(),
    );
}
