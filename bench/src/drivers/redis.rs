//! `redis-server` under load from `redis-benchmark`, both as they come. The peer becomes the
//! server, and is killed after the round.

use super::{Round, Sample, per_request, port, run, wait_until};
use crate::process::Process;
use anyhow::{Context, Result};
use std::net::{Ipv4Addr, TcpStream};
use std::process::Command;

pub fn round(process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
    let port = port(process)?;
    // It does not tell when it listens.
    let listens = || TcpStream::connect((Ipv4Addr::LOCALHOST, port)).is_ok();
    wait_until(listens, "redis-server does not listen")?;
    let mut command = Command::new("redis-benchmark");
    command.args(["--csv", "-t", "set,get", "-p", &port.to_string()]);
    let (clients, requests) = (round.get("clients"), round.get("requests"));
    command.args(["-c", &clients.to_string(), "-n", &requests.to_string()]);
    let (output, micros) = per_request(process, || run(command, round), |_| 2 * requests)?;
    process.abandon();
    Ok(vec![
        Sample::new("SET", per_second(&output, "SET")?),
        Sample::new("GET", per_second(&output, "GET")?),
        Sample::new("processor", micros),
    ])
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
mod tests {
    #[test]
    fn the_rate_of_a_test_is_in_its_line() {
        let csv =
            "\"test\",\"rps\",\"avg\"\n\"SET\",\"98765.43\",\"0.2\"\n\"GET\",\"5.5\",\"0.2\"\n";
        assert_eq!(super::per_second(csv, "GET").unwrap(), 5.5);
        assert!(super::per_second(csv, "INCR").is_err());
    }
}
