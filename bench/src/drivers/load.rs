//! A server under load from our own client, which checks each answer: `users`, who come one after
//! the other and make some requests each, or `open` connections, each of which makes one request
//! after the other.

use super::usage::watched;
use super::{Round, Sample, port, run};
use crate::process::Process;
use anyhow::{Context, Result};
use bench_load::report::Report;
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Users arrive evenly, each makes some requests one after the other, whose handler waits.
pub fn users(process: &mut Process, round: &Round, warm_up: bool) -> Result<Vec<Sample>> {
    let (users, ramp) = match warm_up {
        // Handlers wait: more users would not make it take longer.
        true => (500, 200),
        false => (round.get("users"), round.get("ramp_ms")),
    };
    let numbers = [
        ("--users", users),
        ("--requests", round.get("requests")),
        ("--ramp-ms", ramp),
        ("--timeout-ms", 2 * round.get("delay_ms") + 10_000),
    ];
    measured(process, round, "users", &numbers, &[])
}

/// Each connection makes one request after the other.
pub fn open(process: &mut Process, round: &Round, warm_up: bool) -> Result<Vec<Sample>> {
    let (mut connections, mut ramp) = (round.get("connections"), round.get("ramp_ms"));
    let mut measure = round.get("measure_ms");
    if warm_up {
        // Few enough that it does not take long.
        (connections, ramp, measure) = (connections.min(100), 200, measure.min(500));
    }
    let numbers = [
        ("--connections", connections),
        ("--ramp-ms", ramp),
        ("--measure-ms", measure),
        ("--timeout-ms", 20_000),
        ("--server", process.id().into()),
    ];
    let what: &[&str] = match (round.get("echo"), round.get("backend_ms")) {
        (0, 0) => &["--body", "Hello, World!"],
        // The sum of the lengths of three greetings.
        (0, _) => &["--body", "39"],
        _ => &["--echo"],
    };
    measured(process, round, "open", &numbers, what)
}

/// Runs our own client, and watches the server meanwhile.
fn measured(
    process: &mut Process,
    round: &Round,
    subcommand: &str,
    numbers: &[(&str, u64)],
    more: &[&str],
) -> Result<Vec<Sample>> {
    let mut command = Command::new(round.load);
    command
        .args([subcommand, "--port", &port(process)?.to_string()])
        .args(more);
    for (option, number) in numbers {
        command.args([option, &number.to_string()[..]]);
    }
    let (peak, output) = watched(process.id(), || run(command, round));
    let output = output?;
    let report: Report =
        serde_json::from_str(&output).with_context(|| format!("the client said {output:?}"))?;
    let connections = round.get("connections");
    let mut samples = peak.samples();
    samples.extend(of(&report, round.get("delay_ms") as f64, connections));
    Ok(samples)
}

/// The numbers of a report. A remark says if fewer connections were open than asked for: the
/// numbers are for that many.
fn of(report: &Report, delay_ms: f64, connections: u64) -> Vec<Sample> {
    let (latency, most) = (&report.latency, report.peak_connections);
    let errors = report.errors as f64 * 100.0 / report.requests.max(1) as f64;
    let first = report
        .first_error
        .as_ref()
        .map(|error| format!("the first error: {error}"));
    let missing =
        (most < connections).then(|| format!("no more than {most} connections were open"));
    let maybe = |metric: &str, value: Option<f64>| Sample {
        value: value.ok_or_else(|| "no request was answered".to_owned()),
        ..Sample::new(metric, 0.0)
    };
    let over = |metric: &str, ms: Option<f64>| maybe(metric, ms.map(|ms| (ms - delay_ms).max(0.0)));
    let server = report.server.filter(|share| share.answered > 0);
    vec![
        Sample::new("errors", errors).remark(first),
        Sample::new("requests", report.per_second).remark(missing),
        maybe("mean", latency.mean_ms),
        maybe("p50", latency.p50_ms),
        maybe("p99", latency.p99_ms),
        over("mean over the delay", latency.mean_ms),
        over("p99 over the delay", latency.p99_ms),
        over("max over the delay", latency.max_ms),
        maybe(
            "processor",
            server.map(|share| share.cpu_s * 1e6 / share.answered as f64),
        ),
    ]
}

/// The backend that all frontends call. Ends when dropped.
pub struct Backend {
    child: Child,
    pub port: u16,
}

impl Backend {
    /// Starts it, with this delay.
    ///
    /// # Errors
    ///
    /// If it does not start.
    pub fn start(load: &Path, delay_ms: u64) -> Result<Backend> {
        #[derive(Deserialize)]
        struct Listening {
            listening: u16,
        }
        let mut command = Command::new(load);
        command.args(["backend", "--delay-ms", &delay_ms.to_string()]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no pipe from the backend")?;
        let mut backend = Backend { child, port: 0 };
        BufReader::new(stdout).read_line(&mut line)?;
        let told: Listening =
            serde_json::from_str(&line).with_context(|| format!("the backend said {line:?}"))?;
        backend.port = told.listening;
        Ok(backend)
    }
}

impl Drop for Backend {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
