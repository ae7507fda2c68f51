//! The program under test.

#![allow(
    dead_code,
    reason = "each test program includes this and uses a part of it"
)]

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Output, Stdio};

use bench_load::report::Report;
use serde_json::Value;

pub const PROGRAM: &str = env!("CARGO_BIN_EXE_bench-load");

/// Runs it with these arguments, separated by spaces (where `_` stands for a space), and the port.
pub fn run(args: &str, port: u16) -> Output {
    let mut command = Command::new(PROGRAM);
    command.args(args.split(' ').map(|arg| arg.replace('_', " ")));
    command
        .args(["--port", &port.to_string()])
        .output()
        .unwrap()
}

/// What it printed: one line, of JSON.
pub fn line(output: &Output) -> Value {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    assert_eq!(text.matches('\n').count(), 1, "{output:?}");
    serde_json::from_str(text).unwrap()
}

/// What it printed about a load, which must add up.
pub fn report(args: &str, port: u16) -> Report {
    let output = run(args, port);
    assert!(output.status.success(), "{output:?}");
    let report: Report = serde_json::from_value(line(&output)).unwrap();
    assert_eq!(report.ok + report.errors, report.requests, "{report:?}");
    assert_eq!(
        report.first_error.is_some(),
        report.errors > 0,
        "{report:?}"
    );
    assert_eq!(report.latency.max_ms.is_some(), report.ok > 0, "{report:?}");
    report
}

/// `bench-load backend`, which ends when its standard input does.
pub struct Backend {
    pub port: u16,
    child: Child,
}

impl Backend {
    pub fn start(delay_ms: &str) -> Backend {
        let mut command = Command::new(PROGRAM);
        command.args(["backend", "--delay-ms", delay_ms]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap())
            .read_line(&mut line)
            .unwrap();
        let line: Value = serde_json::from_str(&line).unwrap();
        let port = u16::try_from(line["listening"].as_u64().unwrap()).unwrap();
        Backend { port, child }
    }

    /// Ends its standard input and waits for it to end as well; whether it did well.
    pub fn end(mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.child.wait().unwrap();
    }
}
