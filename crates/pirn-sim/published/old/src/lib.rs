//! What the tests of published bugs have in common.

use pirn_sim::Sim;
use std::sync::Arc;

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
    let failure = run(0..1000).unwrap_or_else(|| panic!("{bug} is not found"));
    println!("{bug}: {failure}");
    assert!(failure.needed.is_some(), "its schedule shows it");
    if std::env::var_os("NUMBERS").is_some() {
        let first = |range: u64| {
            let failure = run(range * 1000..(range + 1) * 1000);
            failure.map_or(1000, |failure| failure.passed + 1)
        };
        let mean = (20..32).map(first).sum::<u64>() as f64 / 12.0;
        let failures: Vec<_> = (0..1000).filter_map(|seed| run(seed..seed + 1)).collect();
        let needed = failures.iter().filter_map(|it| it.needed.as_ref());
        let mut switches: Vec<_> = needed.map(Vec::len).collect();
        switches.sort_unstable();
        println!(
            "| {bug} | {mean:.1} | {} | {:?}, {:?} | {} | {} points",
            failures.len(),
            switches.get(switches.len() / 2),
            switches.last(),
            failures.len() - switches.len(),
            failure.report.points,
        );
    }
}
