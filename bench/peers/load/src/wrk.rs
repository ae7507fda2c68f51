//! Calls the load generator `wrk`, version 4.1, with a script by which it prints its numbers as
//! JSON.

use anyhow::{Context, Result, ensure};
use serde::Deserialize;
use std::path::Path;
use std::process::Command;

/// What wrk measured.
///
/// Latencies are of the requests that took no longer than wrk's time limit of 2 s: those it counts
/// as timeouts are missing from them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Wrk {
    /// How long it asked.
    pub duration_us: f64,
    /// Requests answered.
    pub requests: u64,
    /// The median latency.
    pub p50_ms: f64,
    /// The latency that 99 of 100 did not exceed.
    pub p99_ms: f64,
    /// Answers with a status above 399.
    pub non_2xx: u64,
    /// What failed beside them.
    pub errors: SocketErrors,
}

impl Wrk {
    /// Requests answered in a second.
    pub fn requests_per_second(&self) -> f64 {
        self.requests as f64 * 1e6 / self.duration_us
    }
}

/// How often what has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Deserialize)]
pub struct SocketErrors {
    /// Connections that could not be opened.
    pub connect: u64,
    /// Connections that broke or were closed early, and answers that are not HTTP. With
    /// `Connection: close`, each answer of a server that closes without saying so in its answer.
    pub read: u64,
    /// Requests that could not be sent.
    pub write: u64,
    /// Requests that took too long.
    pub timeout: u64,
}

/// What wrk asks for, again and again.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The server's port on 127.0.0.1.
    pub port: u16,
    /// Whether it speaks TLS, with whatever certificate.
    pub tls: bool,
    /// The path, from the slash on.
    pub path: &'a str,
    /// Whether each request has a connection of its own.
    pub close: bool,
    /// A file with what [`script`] returns.
    pub script: &'a Path,
}

/// Asks from one thread, over this many connections.
pub fn command(ask: &Ask, connections: u64, seconds: u64) -> Command {
    let mut wrk = Command::new("wrk");
    wrk.args(["--threads", "1", "--latency"]);
    wrk.args(["--connections", &connections.to_string()]);
    wrk.args(["--duration", &format!("{seconds}s")]);
    if ask.close {
        wrk.args(["--header", "Connection: close"]);
    }
    wrk.arg("--script").arg(ask.script);
    let scheme = if ask.tls { "https" } else { "http" };
    wrk.arg(format!("{scheme}://127.0.0.1:{}{}", ask.port, ask.path));
    wrk
}

/// A script in Lua that prints the numbers, and, if a number of bytes is given, has the requests
/// send a body of that length.
pub fn script(upload: Option<u64>) -> String {
    let body = upload
        .map(|bytes| format!("wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", {bytes})\n"));
    body.unwrap_or_default() + include_str!("wrk.lua")
}

/// Reads the standard output of [`command`].
///
/// # Errors
///
/// If wrk has printed no numbers, or has measured nothing.
pub fn parse(output: &str) -> Result<Wrk> {
    let line = output.lines().find(|line| line.starts_with('{'));
    let line = line.with_context(|| format!("wrk printed: {output}"))?;
    let wrk: Wrk = serde_json::from_str(line).with_context(|| format!("wrk printed: {line}"))?;
    ensure!(
        wrk.requests > 0 && wrk.p99_ms > 0.0,
        "wrk measured nothing: {output}"
    );
    Ok(wrk)
}
