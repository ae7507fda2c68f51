//! Servers with a thread per connection or per request, under load from connections that stay open:
//! what they answer, and what they take for it.

use super::load::{client, errors, latency};
use super::usage::watched;
use super::wrk::port;
use super::{Driver, Round, Sample};
use crate::process::Process;
use anyhow::{Context, Result};
use bench_load::report::{Report, Share};

/// Each connection makes one request after the other.
pub struct Served {
    /// How many there usually are; the parameter `connections` says how many there will be.
    pub connections: u64,
    pub ramp_ms: u64,
    pub measure_ms: u64,
    /// Whether bytes are sent back; else a greeting is asked for, over HTTP.
    pub echo: bool,
}

impl Driver for Served {
    fn serves(&self) -> bool {
        true
    }

    fn descriptors(&self) -> u64 {
        self.connections + 64
    }

    fn warm_up(&self, process: &mut Process, round: &Round) -> Result<()> {
        // Few enough that it does not take long.
        let connections = round.param("connections")?.min(100);
        self.load(process, round, connections, 200, 500).map(drop)
    }

    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let connections = round.param("connections")?;
        let (peak, outcome) = watched(process.id(), || {
            self.load(process, round, connections, self.ramp_ms, self.measure_ms)
        });
        let outcome = outcome?;
        let share = outcome.server.context("the client tells no times")?;
        Ok(vec![
            errors(&outcome),
            Sample {
                remark: missing(&outcome, connections),
                ..Sample::new("requests", outcome.per_second)
            },
            latency("p50", outcome.latency.p50_ms),
            latency("p99", outcome.latency.p99_ms),
            each_took(&share),
            Sample::new("memory", peak.mib()),
            Sample::new("OS threads", peak.threads as f64),
        ])
    }
}

/// What to say if not all connections were open: then the numbers are those of fewer.
fn missing(outcome: &Report, connections: u64) -> Option<String> {
    let most = outcome.peak_connections;
    (most < connections).then(|| format!("no more than {most} connections were open"))
}

/// The processor time that the server took for a request.
fn each_took(share: &Share) -> Sample {
    let micros = share.cpu_s * 1e6 / share.answered as f64;
    let none = || Err("no request was answered".to_owned());
    Sample {
        value: if share.answered == 0 {
            none()
        } else {
            Ok(micros)
        },
        ..Sample::new("processor", 0.0)
    }
}

impl Served {
    fn load(
        &self,
        process: &mut Process,
        round: &Round,
        connections: u64,
        ramp_ms: u64,
        measure_ms: u64,
    ) -> Result<Report> {
        let numbers = [
            ("--port", port(process)?.into()),
            ("--connections", connections),
            ("--ramp-ms", ramp_ms),
            ("--measure-ms", measure_ms),
            ("--timeout-ms", 20_000),
            ("--server", process.id().into()),
        ];
        let what: &[&str] = match self.echo {
            true => &["--echo"],
            false => &["--body", "Hello, World!"],
        };
        client(round, "open", &numbers, what)
    }
}
