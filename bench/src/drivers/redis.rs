//! `redis-server` under load from `redis-benchmark`, both as they come.

use super::usage::processor_time;
use super::wrk::{port, run};
use super::{Driver, Round, Sample};
use crate::process::Process;
use anyhow::{Context, Result, bail};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;
use std::time::{Duration, Instant};

/// The peer becomes a server, and is killed after the round.
pub struct Redis;

impl Driver for Redis {
    fn serves(&self) -> bool {
        true
    }

    fn program(&self) -> Option<&'static str> {
        Some("redis-benchmark")
    }

    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let port = port(process)?;
        wait_for(port)?;
        let (clients, requests) = (round.param("clients")?, round.param("requests")?);
        let before = processor_time(process.id())?;
        let mut command = Command::new("redis-benchmark");
        command.args(["--csv", "-t", "set,get"]);
        for (option, number) in [("-p", port.into()), ("-c", clients), ("-n", requests)] {
            command.args([option, &number.to_string()]);
        }
        let output = run(command, round)?;
        let taken = processor_time(process.id())?.saturating_sub(before);
        process.abandon();
        let micros = taken.as_secs_f64() * 1e6 / (2 * requests) as f64;
        Ok(vec![
            Sample::new("SET", per_second(&output, "SET")?),
            Sample::new("GET", per_second(&output, "GET")?),
            Sample::new("processor", micros),
        ])
    }
}

/// Waits until the server listens, which it does not tell.
fn wait_for(port: u16) -> Result<()> {
    const LIMIT: Duration = Duration::from_secs(60);
    let start = Instant::now();
    while TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_err() {
        if start.elapsed() > LIMIT {
            bail!("redis-server does not listen");
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    Ok(())
}

/// The requests per second of a test: the second column of its line, `"SET","98765.43",...`.
fn per_second(csv: &str, test: &str) -> Result<f64> {
    let mut lines = csv.lines().map(|line| line.split(','));
    let value = lines.find_map(|mut columns| {
        let is_this = columns.next()?.trim_matches('"') == test;
        let value = columns.next()?.trim_matches('"');
        is_this.then(|| value.parse().ok())?
    });
    value.with_context(|| format!("redis-benchmark tells nothing of {test}: {csv:?}"))
}

#[cfg(test)]
mod tests;
