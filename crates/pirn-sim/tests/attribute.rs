//! `#[pirn_sim::test]`.

use pirn_sim::{chance, is_simulated};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

static RUNS: AtomicU32 = AtomicU32::new(0);

#[pirn_sim::test(seeds(0..30), pauses(10, Duration::from_secs(60)))]
fn a_test_runs_with_each_seed_and_once_more_to_see_that_runs_are_alike() {
    assert!(is_simulated());
    thread::spawn(|| thread::sleep(Duration::from_secs(3600)))
        .join()
        .unwrap();
    RUNS.fetch_add(1, Relaxed);
}

#[pirn_sim::test(seeds(0..100))]
#[should_panic(expected = "PIRN_SIM=")]
fn a_failure_says_how_to_see_it_again() {
    assert!(!chance(0.2));
}

#[test]
fn nothing_is_simulated_outside() {
    assert!(!is_simulated());
    assert!(!chance(1.0));
}
