//! The program works: small sizes of everything, through its command line.

use serde_json::Value;
use std::process::{Command, Output};

fn bench(args: &[&str]) -> Output {
    // The program has a watchdog of its own for each round.
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command
        .args(args)
        .args(["--timeout", "60"])
        .output()
        .unwrap()
}

#[track_caller]
fn text(output: Output) -> String {
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{}: {stderr}", output.status);
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn every_workload_gives_verified_numbers() {
    let file = std::env::temp_dir().join(format!("pirn-bench-{}.json", std::process::id()));
    let table = text(bench(&[
        "--quick",
        "--rounds",
        "2",
        "--json",
        file.to_str().unwrap(),
    ]));
    let report: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    std::fs::remove_file(file).unwrap();

    assert_eq!(report["quick"], true);
    assert!(table.contains("MEAN NOTHING"), "{table}");
    let rows = report["rows"].as_array().unwrap();
    for line in text(bench(&["--list"])).lines() {
        let name = line.split_whitespace().next().unwrap();
        let of_this = rows.iter().filter(|row| row["workload"] == name).count();
        assert!(of_this > 0, "no rows for {name} in {report:#}");
        assert!(table.contains(name), "no line for {name} in {table}");
    }
    for row in rows {
        let number = |field: &str| row[field].as_f64().unwrap();
        assert_eq!(row["values"].as_array().unwrap().len(), 2, "{row}");
        // Page tables may grow by nothing.
        assert!(
            number("min") > 0.0 || row["metric"] == "  of it page tables",
            "{row}"
        );
        assert!(
            number("min") <= number("median") && number("median") <= number("max"),
            "{row}"
        );
    }
}

#[test]
fn only_the_named_workloads_run() {
    let table = text(bench(&[
        "pingpong_park",
        "spawn_join_main",
        "--quick",
        "--rounds",
        "1",
    ]));
    let names: Vec<&str> = table
        .lines()
        .skip_while(|line| !line.starts_with("workload"))
        .skip(1)
        .map(|line| line.split_whitespace().next().unwrap())
        .collect();
    assert_eq!(names, ["spawn_join_main", "pingpong_park"]);
}

#[test]
fn an_unknown_workload_is_an_error_that_lists_them() {
    let output = bench(&["spawn_brust"]);
    assert_eq!(output.status.code(), Some(2));
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(
        message.contains("spawn_brust") && message.contains("spawn_burst"),
        "{message}"
    );
}

#[test]
fn a_workload_that_takes_too_long_is_given_up_and_the_next_one_run() {
    // Sleepers sleep a second.
    let args = [
        "sleepers",
        "mutex_uncontended",
        "--quick",
        "--rounds",
        "1",
        "--timeout",
        "0.3",
    ];
    let output = Command::new(env!("CARGO_BIN_EXE_bench"))
        .args(args)
        .output()
        .unwrap();
    let table = String::from_utf8(output.stdout).unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{table}{message}");
    assert!(
        message.contains("a round of sleepers is not done after 300ms"),
        "{message}"
    );
    let failed = |line: &str| line.starts_with("sleepers ") && line.contains("FAILED");
    assert!(table.lines().any(failed), "{table}");
    assert!(
        table
            .lines()
            .any(|line| line.starts_with("mutex_uncontended")),
        "{table}"
    );
}
