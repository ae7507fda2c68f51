//! The program and its peers work: small sizes of everything, through its command line.

use serde_json::Value;
use std::path::PathBuf;
use std::process::{Command, Output};

/// Runs the program. It gives up every peer that does not get on by itself.
fn bench(args: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    command.args(args).output().unwrap()
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A file that no other test has.
fn scratch(name: &str) -> PathBuf {
    std::env::temp_dir().join(format!("pirn-bench-{}-{name}", std::process::id()))
}

/// Runs the program with `--json`; gives what it printed and the results. Why a peer is skipped is
/// among what a failed test shows.
fn measured(name: &str, args: &[&str]) -> (Output, Value) {
    let file = scratch(name);
    let output = bench(&[args, &["--json", file.to_str().unwrap()]].concat());
    print!("{}", stderr(&output));
    let json = std::fs::read(&file).unwrap_or_else(|_| panic!("no results: {}", stderr(&output)));
    std::fs::remove_file(file).unwrap();
    (output, serde_json::from_slice(&json).unwrap())
}

fn array<'a>(value: &'a Value, field: &str) -> &'a [Value] {
    value[field]
        .as_array()
        .unwrap_or_else(|| panic!("no {field} in {value}"))
}

fn text<'a>(value: &'a Value, field: &str) -> &'a str {
    value[field]
        .as_str()
        .unwrap_or_else(|| panic!("no {field} in {value}"))
}

/// The names of those in a list of rows or failures.
fn peers(list: &[Value]) -> Vec<&str> {
    list.iter().map(|item| text(item, "peer")).collect()
}

#[test]
#[ignore = "builds all peers, tokio and hyper among them: ci/check bench asks for it"]
fn every_workload_of_every_present_peer_does_its_work() {
    let (output, results) = measured("all.json", &["--quick"]);
    let mut present: Vec<&str> = Vec::new();
    for peer in array(&results, "peers") {
        match peer["skipped"].as_str() {
            Some(why) => println!("{} is not tested: {why}", text(peer, "name")),
            None => present.push(text(peer, "name")),
        }
    }
    let built_here = "pirn os-threads tokio may pirn-process pirn-http pirn-textbook ractor kameo \
                      actix rayon native pirn-run";
    for peer in built_here.split_whitespace() {
        assert!(present.contains(&peer), "{peer} is not there");
    }
    let mut at_work: Vec<&str> = Vec::new();
    for workload in array(&results, "workloads") {
        let name = text(workload, "name");
        for case in array(workload, "cases") {
            for failure in array(case, "failures") {
                assert_eq!(failure["expected"], true, "{name}: {failure:#}");
                assert!(cannot(text(failure, "peer"), name), "{name}: {failure}");
            }
            let metrics = array(case, "metrics");
            let first = with_number_or_reason(&metrics[0]);
            assert!(first.len() > 1, "{name}: {case:#}");
            for metric in metrics {
                assert_eq!(with_number_or_reason(metric), first, "{name}: {metric:#}");
                array(metric, "rows")
                    .iter()
                    .for_each(|row| check_row(name, row));
            }
            at_work.extend(first);
        }
    }
    for peer in present {
        assert!(at_work.contains(&peer), "{peer} has no number");
    }
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("MEAN NOTHING"));
}

/// The peers that have a number, or say why not.
fn with_number_or_reason(metric: &Value) -> Vec<&str> {
    let mut found = peers(array(metric, "rows"));
    found.extend(peers(array(metric, "skipped")));
    found.sort_unstable();
    found
}

fn check_row(workload: &str, row: &Value) {
    let number = |field: &str| row[field].as_f64().unwrap();
    let (min, median, max) = (number("min"), number("median"), number("max"));
    assert!(
        0.0 <= min && min <= median && median <= max,
        "{workload}: {row}"
    );
}

/// Whether a peer cannot do some case of a workload at this size: may's server does not close
/// connections, and has neither HTTP/2 nor TLS, like a textbook's server.
fn cannot(peer: &str, workload: &str) -> bool {
    let known = [
        ("may", "http"),
        ("may", "http-server"),
        ("pirn-textbook", "http-server"),
    ];
    known.contains(&(peer, workload))
}

#[test]
#[ignore = "builds two peers, Pirn anew among them: ci/check bench asks for it"]
fn only_the_named_workloads_and_peers_run() {
    let args = [
        "pingpong",
        "yield",
        "--peers",
        "os-threads,pirn",
        "--quick",
        "--rounds",
        "2",
    ];
    let (_, results) = measured("named.json", &args);
    let names = |field| {
        array(&results, field)
            .iter()
            .map(|item| text(item, "name"))
            .collect::<Vec<_>>()
    };
    assert_eq!(names("workloads"), ["yield", "pingpong"]);
    assert_eq!(names("peers"), ["pirn", "os-threads"]);
    let metric = &results["workloads"][0]["cases"][0]["metrics"][0];
    assert_eq!(peers(array(metric, "rows")), ["pirn", "os-threads"]);
    assert_eq!(metric["rows"][0]["values"].as_array().unwrap().len(), 2);
    assert_eq!(metric["verdict"]["best"], "os-threads");
}

#[test]
fn unknown_names_are_errors_that_list_what_there_is() {
    for (args, wrong, right) in [
        (["spawn_brust", "--quick"], "spawn_brust", "pingpong"),
        (["--peers", "rust"], "rust", "os-threads"),
        (["--set", "brust=7"], "brust", "burst="),
    ] {
        let output = bench(&args);
        assert_eq!(output.status.code(), Some(1));
        let message = stderr(&output);
        assert!(
            message.contains(wrong) && message.contains(right),
            "{message}"
        );
    }
}

#[test]
fn a_peer_that_takes_too_long_is_given_up_and_the_rest_goes_on() {
    // The sleepers sleep longer than that; no peer takes as long to yield a few times.
    let args = [
        "sleepers",
        "yield",
        "--quick",
        "--peers",
        "os-threads",
        "--set",
        "ms=30000",
        "--timeout",
        "10",
    ];
    let (output, results) = measured("slow.json", &args);
    assert_eq!(output.status.code(), Some(1));
    let failures = array(&results["workloads"][1]["cases"][0], "failures");
    assert!(
        text(&failures[0], "why").contains("not done after 10s"),
        "{failures:?}"
    );
    assert!(
        stdout(&output).contains("not done after 10s"),
        "{}",
        stdout(&output)
    );
    let metric = &results["workloads"][0]["cases"][0]["metrics"][0];
    assert_eq!(peers(array(metric, "rows")), ["os-threads"]);
}

#[test]
#[ignore = "builds two peers, Pirn anew among them: ci/check bench asks for it"]
fn a_peer_that_cannot_do_it_says_why_and_the_others_go_on() {
    // No stack holds this many frames.
    let args = [
        "deep",
        "--quick",
        "--peers",
        "pirn,os-threads",
        "--set",
        "depth=100000000",
    ];
    let (output, results) = measured("deep.json", &args);
    assert_eq!(output.status.code(), Some(1));
    let failures = array(&results["workloads"][0]["cases"][0], "failures");
    assert_eq!(peers(failures), ["pirn", "os-threads"]);
    assert!(
        text(&failures[0], "why").contains("cannot start a thread"),
        "{failures:?}"
    );
}

#[test]
fn a_run_is_compared_with_an_earlier_one() {
    let file = scratch("earlier.json");
    let path = file.to_str().unwrap();
    let quick = ["yield", "--peers", "os-threads", "--quick"];
    assert!(
        bench(&[&quick[..], &["--json", path]].concat())
            .status
            .success()
    );
    // Pirn's numbers are compared, but building it anew would take longer than all else.
    let measured = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, measured.replace("os-threads", "pirn")).unwrap();

    let same = bench(&["--from", path, "--against", path]);
    assert!(same.status.success(), "{}", stderr(&same));
    assert!(stdout(&same).contains("before") && !stdout(&same).contains("LOST"));

    // The earlier run was twice as quick.
    let mut results: Value = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
    let median = &mut results["workloads"][0]["cases"][0]["metrics"][0]["rows"][0]["median"];
    *median = (median.as_f64().unwrap() / 2.0).into();
    let quicker = scratch("quicker.json");
    std::fs::write(&quicker, results.to_string()).unwrap();
    let against = ["--from", path, "--against", quicker.to_str().unwrap()];
    let lost = bench(&against);
    assert_eq!(lost.status.code(), Some(1));
    assert!(stdout(&lost).contains("LOST"), "{}", stdout(&lost));
    assert!(
        stderr(&lost).contains("worse than before by more than 10 %"),
        "{}",
        stderr(&lost)
    );
    let put_up_with = bench(&[&against[..], &["--loss", "101"]].concat());
    assert!(put_up_with.status.success(), "{}", stderr(&put_up_with));

    for file in [&file, &quicker] {
        std::fs::remove_file(file).unwrap();
    }
    let missing = bench(&["yield", "--quick", "--against", path]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(
        stderr(&missing).contains("cannot read"),
        "{}",
        stderr(&missing)
    );
}

#[test]
fn results_are_shown_again_without_measuring() {
    let file = scratch("again.json");
    let path = file.to_str().unwrap();
    let first = bench(&["yield", "--peers", "os-threads", "--quick", "--json", path]);
    let second = bench(&["--from", path]);
    std::fs::remove_file(&file).unwrap();
    assert!(first.status.success() && second.status.success());
    assert_eq!(stdout(&first), stdout(&second));
    let missing = bench(&["--from", path]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(stderr(&missing).contains("again.json"));
}
