//! `#[pirn_sim::test]`.

use pirn_sim::{Sim, chance, is_simulated};
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

#[test]
fn what_a_simulated_thread_prints_is_captured_by_the_harness() {
    const PRINTS: &str = "PIRN_TEST_PRINTS";
    if std::env::var_os(PRINTS).is_some() {
        return Sim::new().seeds(0..3).check(|| {
            println!("by the first thread");
            thread::spawn(|| println!("by another")).join().unwrap();
        });
    }
    let own = std::env::current_exe().unwrap();
    let name = thread::current().name().unwrap().to_owned();
    let output = std::process::Command::new(own)
        .args([&name, "--exact", "--test-threads=2"])
        .env(PRINTS, "1")
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("1 passed") && !text.contains("by "), "{text}");
}

/// Runs this test in a process of its own, where `variable` is set. Returns what it writes to
/// standard error.
fn errors_of_child(variable: &str) -> String {
    let own = std::env::current_exe().unwrap();
    let name = thread::current().name().unwrap().to_owned();
    let output = std::process::Command::new(own)
        .args([&name, "--exact", "--nocapture", "--test-threads=2"])
        .env(variable, "1")
        .output()
        .unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn a_crash_says_the_seed() {
    const CRASHES: &str = "PIRN_TEST_CRASHES";
    if std::env::var_os(CRASHES).is_some() {
        return Sim::new().seeds(7..8).check(|| {
            thread::spawn(|| std::process::abort()).join().unwrap();
        });
    }
    let errors = errors_of_child(CRASHES);
    assert!(errors.contains("crashes in the run of seed 7:"), "{errors}");
}
