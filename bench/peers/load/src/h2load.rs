//! Calls the load generator `h2load`, version 1.52 of nghttp2, and reads what it writes.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// What h2load measured.
#[derive(Clone, Debug, PartialEq)]
pub struct H2load {
    /// Requests answered in a second.
    pub requests_per_second: f64,
    /// Requests answered, with whatever status.
    pub requests: u64,
    /// The median time from a request to the end of its answer.
    pub p50_ms: f64,
    /// The time that 99 of 100 did not exceed.
    pub p99_ms: f64,
    /// Requests with another status than 200, or none at all.
    pub not_200: u64,
    /// Requests that were never answered.
    pub lost: u64,
}

/// Loads `GET /` on this port of 127.0.0.1 from one thread, over HTTP/2 by prior knowledge: each
/// connection has this many requests under way. Each request becomes a line of the file `log`.
pub fn command(port: u16, connections: u64, streams: u64, seconds: u64, log: &Path) -> Command {
    let mut h2load = Command::new("h2load");
    for (option, number) in [
        ("--threads", 1),
        ("--clients", connections),
        ("--max-concurrent-streams", streams),
        ("--duration", seconds),
    ] {
        h2load.arg(format!("{option}={number}"));
    }
    h2load.arg("--log-file").arg(log);
    h2load.arg(format!("http://127.0.0.1:{port}/"));
    h2load
}

/// Reads the standard output of [`command`], and its log. It is an error if nothing was answered.
///
/// h2load itself prints neither median nor percentiles.
pub fn parse(output: &str, log: &str) -> Result<H2load> {
    let mut lines = output.lines();
    let mut begins = |with: &str| lines.find_map(|line| line.strip_prefix(with));
    let rate = begins("finished in ").with_context(|| format!("h2load printed: {output}"))?;
    let counts = begins("requests: ").with_context(|| format!("h2load printed: {output}"))?;
    let rate = rate
        .split(", ")
        .find_map(|word| word.strip_suffix(" req/s"));
    let requests_per_second = rate.context("no requests per second")?.parse()?;
    let count = |name: &str| -> Result<u64> {
        let mut words = counts.split(", ").filter_map(|word| word.split_once(' '));
        let found = words.find(|(_, which)| *which == name);
        let (count, _) = found.with_context(|| format!("no number of {name} in {counts:?}"))?;
        Ok(count.parse()?)
    };
    let (mut micros, not_200) = answers(log)?;
    ensure!(!micros.is_empty(), "h2load measured nothing: {output}");
    micros.sort_unstable();
    let at = |part: f64| micros[((micros.len() - 1) as f64 * part).round() as usize] as f64 / 1e3;
    Ok(H2load {
        requests_per_second,
        requests: count("done")?,
        p50_ms: at(0.5),
        p99_ms: at(0.99),
        not_200,
        lost: count("errored")? + count("timeout")?,
    })
}

/// The times of the requests with status 200 in microseconds, and the number of the others. A line
/// has the moment of the request, the status, and the time until the end of the answer.
fn answers(log: &str) -> Result<(Vec<u64>, u64)> {
    let (mut micros, mut others) = (Vec::new(), 0);
    for line in log.lines() {
        let mut columns = line.split('\t').skip(1);
        let (Some(status), Some(time)) = (columns.next(), columns.next()) else {
            bail!("cannot read h2load's line {line:?}");
        };
        match status {
            "200" => micros.push(time.parse().with_context(|| format!("the line {line:?}"))?),
            _ => others += 1,
        }
    }
    Ok((micros, others))
}
