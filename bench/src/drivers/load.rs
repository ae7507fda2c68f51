//! Servers under load from many users, who come one after the other and check each answer.

use super::usage::watched;
use super::wrk::{port, run};
use super::{Driver, Round, Sample};
use crate::process::Process;
use anyhow::{Context, Result};
use bench_load::report::{Latency, Report};
use serde::Deserialize;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Users arrive evenly, each makes some requests one after the other, whose handler waits.
pub struct Users {
    pub requests: u64,
}

/// Runs our own client; gives what it says.
pub fn client(
    round: &Round,
    subcommand: &str,
    numbers: &[(&str, u64)],
    more: &[&str],
) -> Result<Report> {
    let mut command = Command::new(round.load);
    command.arg(subcommand).args(more);
    for (option, number) in numbers {
        command.arg(option).arg(number.to_string());
    }
    let output = run(command, round)?;
    serde_json::from_str(&output).with_context(|| format!("the client said {output:?}"))
}

pub fn latency(metric: &str, ms: Option<f64>) -> Sample {
    Sample {
        value: ms.ok_or_else(|| "no request was answered".to_owned()),
        ..Sample::new(metric, 0.0)
    }
}

pub fn errors(report: &Report) -> Sample {
    Sample {
        remark: report
            .first_error
            .as_ref()
            .map(|error| format!("the first error: {error}")),
        ..Sample::new(
            "errors",
            report.errors as f64 * 100.0 / report.requests.max(1) as f64,
        )
    }
}

impl Driver for Users {
    fn serves(&self) -> bool {
        true
    }

    fn warm_up(&self, process: &mut Process, round: &Round) -> Result<()> {
        // Handlers wait: more users would not make it take longer.
        self.load(process, round, 500, 200).map(drop)
    }

    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let (users, ramp) = (round.param("users")?, round.param("ramp_ms")?);
        let (peak, outcome) = watched(process.id(), || self.load(process, round, users, ramp));
        let (outcome, delay) = (outcome?, round.param("delay_ms")? as f64);
        let Latency {
            mean_ms,
            p99_ms,
            max_ms,
            ..
        } = outcome.latency;
        let over =
            |metric: &str, ms: Option<f64>| latency(metric, ms.map(|ms| (ms - delay).max(0.0)));
        Ok(vec![
            errors(&outcome),
            over("mean over the delay", mean_ms),
            over("p99 over the delay", p99_ms),
            over("max over the delay", max_ms),
            Sample::new("memory", peak.mib()),
            Sample::new("OS threads", peak.threads as f64),
        ])
    }
}

impl Users {
    fn load(
        &self,
        process: &mut Process,
        round: &Round,
        users: u64,
        ramp_ms: u64,
    ) -> Result<Report> {
        let timeout_ms = 2 * round.param("delay_ms")? + 10_000;
        let numbers = [
            ("--port", port(process)?.into()),
            ("--users", users),
            ("--requests", self.requests),
            ("--ramp-ms", ramp_ms),
            ("--timeout-ms", timeout_ms),
        ];
        client(round, "users", &numbers, &[])
    }
}

/// A frontend that calls a backend three times for each request.
pub struct Gateway {
    pub connections: u64,
    pub ramp_ms: u64,
    pub measure_ms: u64,
}

impl Driver for Gateway {
    fn serves(&self) -> bool {
        true
    }

    fn descriptors(&self) -> u64 {
        // A client and a call of the backend.
        2 * self.connections + 64
    }

    fn warm_up(&self, process: &mut Process, round: &Round) -> Result<()> {
        // Few enough that the slowest does not take long.
        self.load(process, round, self.connections.min(200), 200)
            .map(drop)
    }

    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let outcome = self.load(process, round, self.connections, self.ramp_ms)?;
        Ok(vec![
            errors(&outcome),
            latency("mean", outcome.latency.mean_ms),
            latency("p99", outcome.latency.p99_ms),
        ])
    }
}

impl Gateway {
    fn load(
        &self,
        process: &mut Process,
        round: &Round,
        connections: u64,
        ramp: u64,
    ) -> Result<Report> {
        let numbers = [
            ("--port", port(process)?.into()),
            ("--connections", connections),
            ("--ramp-ms", ramp),
            ("--measure-ms", self.measure_ms),
            ("--timeout-ms", 20_000),
        ];
        client(round, "open", &numbers, &["--body", "39"])
    }
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
    pub fn start(load: &std::path::Path, delay_ms: u64) -> Result<Backend> {
        #[derive(Deserialize)]
        struct Listening {
            listening: u16,
        }
        let mut command = Command::new(load);
        command.args(["backend", "--delay-ms", &delay_ms.to_string()]);
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut line = String::new();
        let stdout = child.stdout.take().context("no pipe from the backend")?;
        let mut backend = Backend { child, port: 0 };
        BufReader::new(stdout).read_line(&mut line)?;
        let Listening { listening } =
            serde_json::from_str(&line).with_context(|| format!("the backend said {line:?}"))?;
        backend.port = listening;
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
