//! Calls wrk where it is installed, and reads what it prints.

mod program;

use bench_load::wrk::{Ask, SocketErrors, Wrk, command, parse, script};
use program::Backend;
use std::io::ErrorKind;

/// What wrk measures of our own backend, unless it is not installed.
fn measured(upload: Option<u64>, close: bool) -> Option<Wrk> {
    let backend = Backend::start("0");
    let file = std::env::temp_dir().join(format!("bench-load-{}-{close}.lua", std::process::id()));
    std::fs::write(&file, script(upload)).unwrap();
    let port = backend.port;
    let ask = Ask {
        port,
        tls: false,
        path: "/",
        close,
        script: &file,
    };
    let output = command(&ask, 3, 1).output();
    std::fs::remove_file(&file).unwrap();
    match output {
        Err(error) if error.kind() == ErrorKind::NotFound => {
            println!("skipped: wrk is not installed");
            None
        }
        output => Some(parse(&String::from_utf8(output.unwrap().stdout).unwrap()).unwrap()),
    }
}

#[test]
fn the_numbers_of_the_installed_wrk_are_understood() {
    for close in [false, true] {
        let Some(wrk) = measured(None, close) else {
            return;
        };
        assert!(
            wrk.requests > 0 && wrk.requests_per_second() > 1.0,
            "{wrk:?}"
        );
        assert!(wrk.p50_ms > 0.0 && wrk.p50_ms <= wrk.p99_ms, "{wrk:?}");
        assert_eq!(
            (wrk.non_2xx, wrk.errors),
            (0, SocketErrors::default()),
            "{wrk:?}"
        );
    }
}

#[test]
fn a_run_that_measured_nothing_is_an_error_that_shows_it() {
    assert!(
        parse("Running 1s test")
            .unwrap_err()
            .to_string()
            .contains("Running")
    );
    let none = r#"{"duration_us":1,"requests":0,"p50_ms":0,"p99_ms":0,"non_2xx":0,
        "errors":{"connect":25,"read":0,"write":0,"timeout":0}}"#;
    let error = parse(&none.replace('\n', "")).unwrap_err().to_string();
    assert!(error.contains("25"), "{error}");
}

#[test]
fn an_upload_is_a_post_with_so_many_bytes() {
    let script = script(Some(70_000));
    assert!(
        script.contains("wrk.method = \"POST\"") && script.contains("70000"),
        "{script}"
    );
}
