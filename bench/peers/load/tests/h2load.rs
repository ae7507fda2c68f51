//! Reads what h2load of nghttp2 1.52 (Debian's) really wrote.

use std::path::Path;

use bench_load::h2load::{H2load, command, parse};

const PRINTED: &str = include_str!("h2load/hello.txt");
const LOGGED: &str = include_str!("h2load/hello.log");

#[test]
fn a_run_without_errors() {
    let expected = H2load {
        requests_per_second: 1639.0,
        requests: 1_639,
        p50_ms: 4.408,
        p99_ms: 21.794,
        not_200: 0,
        lost: 0,
    };
    assert_eq!(parse(PRINTED, LOGGED).unwrap(), expected);
}

#[test]
fn other_statuses_than_200_are_counted() {
    let log = LOGGED.replacen("\t200\t", "\t404\t", 3);
    let log = log.replacen("\t200\t", "\t-1\t", 1);
    assert_eq!(parse(PRINTED, &log).unwrap().not_200, 4);
}

#[test]
fn a_run_that_measured_nothing_is_an_error_that_shows_it() {
    let error = parse(PRINTED, "").unwrap_err().to_string();
    assert!(error.contains("finished in"), "{error}");
}

#[test]
fn what_h2load_did_not_write_is_an_error() {
    assert!(parse("", LOGGED).is_err());
    assert!(parse(PRINTED, "1795526422139810\t200\n").is_err());
    assert!(parse(PRINTED, "1795526422139810\t200\tlong\n").is_err());
    for line in ["finished in", "requests:"] {
        let kept = PRINTED.lines().filter(|l| !l.starts_with(line));
        let without: String = kept.flat_map(|l| [l, "\n"]).collect();
        assert!(parse(&without, LOGGED).is_err(), "{line}");
    }
}

#[test]
fn the_command_asks_for_what_is_parsed() {
    let command = command(8080, 100, 10, 3, Path::new("log"));
    let line = format!("{command:?}").replace('"', "");
    assert_eq!(
        line,
        "h2load --threads=1 --clients=100 --max-concurrent-streams=10 --duration=3 --log-file log http://127.0.0.1:8080/"
    );
}
