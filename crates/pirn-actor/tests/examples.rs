//! The examples, as programs: what their first lines promise.

use std::process::Command;

/// Runs an example with an argument, and returns what it prints. Cargo builds them before it runs
/// tests.
fn run(name: &str, argument: &str) -> String {
    let mut folder = std::env::current_exe().unwrap();
    folder.pop();
    folder.pop();
    let program = folder.join("examples").join(name);
    let output = Command::new(program).arg(argument).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn devices_are_served() {
    let printed = run("devices", "1000");
    let mut lines = printed.lines();
    assert!(lines.next().unwrap().starts_with("1000 devices, "));
    assert!(printed.contains("is at 100 degrees"), "{printed}");
    assert_eq!(lines.last(), Some("8000 answers, 8000 readings"));
}

#[test]
fn a_fast_source_waits_for_a_slow_store() {
    let printed = run("back_pressure", "300");
    assert!(
        printed.starts_with("300 lines, total 90300\nat most "),
        "{printed}"
    );
}

#[test]
fn stereotypes_do_what_their_names_say() {
    let printed = run("stereotypes", "2");
    let lines: Vec<_> = printed.lines().collect();
    let expected = [
        "1 run once: users is migrated",
        "2 schedule: tick 1",
        "3 schedule: tick 2",
        "4 schedule: stopped after 2 ticks",
    ];
    assert_eq!(lines, expected);
}
