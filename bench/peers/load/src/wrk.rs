//! Calls the load generator `wrk`, version 4.1, and reads what it prints.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

/// What wrk measured.
///
/// Latencies are of the requests that took no longer than wrk's time limit of 2 s: those it counts
/// as timeouts are missing from them.
#[derive(Clone, Debug, PartialEq)]
pub struct Wrk {
    /// Requests answered in a second.
    pub requests_per_second: f64,
    /// Requests answered.
    pub requests: u64,
    /// The median latency.
    pub p50_ms: f64,
    /// The latency that 99 of 100 did not exceed.
    pub p99_ms: f64,
    /// The longest latency.
    pub max_ms: f64,
    /// Answers with a status above 399, for all that wrk calls them "Non-2xx or 3xx".
    pub non_2xx: u64,
    /// What failed beside them.
    pub errors: SocketErrors,
}

/// How often what has failed.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
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
    /// A file with a script that says what a request is, if it is not `GET`.
    pub script: Option<&'a Path>,
}

impl Ask<'_> {
    /// `GET /` over connections that stay open, without TLS.
    pub fn greeting(port: u16) -> Ask<'static> {
        Ask {
            port,
            tls: false,
            path: "/",
            close: false,
            script: None,
        }
    }
}

/// Asks from one thread, over this many connections.
pub fn command(ask: &Ask, connections: u32, seconds: u32) -> Command {
    let mut wrk = Command::new("wrk");
    wrk.args(["--threads", "1", "--latency"]);
    wrk.args(["--connections", &connections.to_string()]);
    wrk.args(["--duration", &format!("{seconds}s")]);
    if ask.close {
        wrk.args(["--header", "Connection: close"]);
    }
    if let Some(script) = ask.script {
        wrk.arg("--script").arg(script);
    }
    let scheme = if ask.tls { "https" } else { "http" };
    wrk.arg(format!("{scheme}://127.0.0.1:{}{}", ask.port, ask.path));
    wrk
}

/// A script for requests that send a body of this many bytes, in Lua.
pub fn upload(bytes: u64) -> String {
    format!("wrk.method = \"POST\"\nwrk.body = string.rep(\"x\", {bytes})\n")
}

/// Reads the standard output of [`command`]. It is an error if wrk has measured nothing, which it
/// prints as latencies of zero.
pub fn parse(output: &str) -> Result<Wrk> {
    let mut lines = Lines::default();
    for line in output.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        lines
            .read(&words)
            .with_context(|| format!("cannot read wrk's line {line:?}"))?;
    }
    let wrk = lines
        .finish()
        .with_context(|| format!("wrk printed: {output}"))?;
    ensure!(wrk.max_ms > 0.0, "wrk measured nothing: {output}");
    Ok(wrk)
}

/// What has been read until now. Lines about errors are there only if there were errors.
#[derive(Default)]
struct Lines {
    requests_per_second: Option<f64>,
    requests: Option<u64>,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    max_ms: Option<f64>,
    non_2xx: u64,
    errors: SocketErrors,
}

impl Lines {
    fn read(&mut self, words: &[&str]) -> Result<()> {
        match words {
            ["Latency", _mean, _deviation, max, _within] => self.max_ms = Some(milliseconds(max)?),
            ["50%", time] => self.p50_ms = Some(milliseconds(time)?),
            ["99%", time] => self.p99_ms = Some(milliseconds(time)?),
            [count, "requests", "in", ..] => self.requests = Some(count.parse()?),
            ["Requests/sec:", rate] => self.requests_per_second = Some(number(rate)?),
            ["Non-2xx", "or", "3xx", "responses:", count] => self.non_2xx = count.parse()?,
            ["Socket", "errors:", errors @ ..] => self.errors = socket_errors(errors)?,
            _ => {}
        }
        Ok(())
    }

    fn finish(self) -> Result<Wrk> {
        Ok(Wrk {
            requests_per_second: self.requests_per_second.context("no requests a second")?,
            requests: self.requests.context("no number of requests")?,
            p50_ms: self.p50_ms.context("no median latency")?,
            p99_ms: self.p99_ms.context("no 99th percentile of latency")?,
            max_ms: self.max_ms.context("no longest latency")?,
            non_2xx: self.non_2xx,
            errors: self.errors,
        })
    }
}

/// `connect 0, read 7, write 0, timeout 7`
fn socket_errors(words: &[&str]) -> Result<SocketErrors> {
    let [
        "connect",
        connect,
        "read",
        read,
        "write",
        write,
        "timeout",
        timeout,
    ] = words
    else {
        bail!("not the errors wrk is known to count");
    };
    let count = |word: &str| word.trim_end_matches(',').parse();
    Ok(SocketErrors {
        connect: count(connect)?,
        read: count(read)?,
        write: count(write)?,
        timeout: count(timeout)?,
    })
}

/// A time with its unit: `168.00us`, `1.20s`.
fn milliseconds(text: &str) -> Result<f64> {
    scaled(
        text,
        &[
            ("us", 1e-3),
            ("ms", 1.0),
            ("s", 1e3),
            ("m", 60e3),
            ("h", 3600e3),
        ],
    )
}

/// A number, perhaps in thousands: `95963.11`, `9.68k`.
fn number(text: &str) -> Result<f64> {
    scaled(text, &[("", 1.0), ("k", 1e3), ("M", 1e6), ("G", 1e9)])
}

fn scaled(text: &str, units: &[(&str, f64)]) -> Result<f64> {
    let end = text
        .find(|c: char| c.is_ascii_alphabetic())
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (_, scale) = units
        .iter()
        .find(|(name, _)| *name == unit)
        .with_context(|| format!("no known unit in {text:?}"))?;
    let value: f64 = digits
        .parse()
        .with_context(|| format!("no number in {text:?}"))?;
    Ok(value * scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_those_of_wrk() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b, "{a} is not {b}");
        near(milliseconds("168.00us").unwrap(), 0.168);
        near(milliseconds("1.26ms").unwrap(), 1.26);
        near(milliseconds("1.20s").unwrap(), 1200.0);
        near(milliseconds("0.87m").unwrap(), 52_200.0);
        near(number("95963.11").unwrap(), 95_963.11);
        near(number("9.68k").unwrap(), 9_680.0);
        near(number("1.20M").unwrap(), 1_200_000.0);
        for wrong in ["", "us", "1.0", "1.0xs", "-nan%", "1.0 s"] {
            assert!(milliseconds(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_command_asks_for_what_is_parsed() {
        let line = |ask: &Ask| format!("{:?}", command(ask, 50, 3)).replace('"', "");
        let keep =
            "wrk --threads 1 --latency --connections 50 --duration 3s http://127.0.0.1:8080/";
        let greeting = Ask::greeting(8080);
        assert_eq!(line(&greeting), keep);
        let close = Ask {
            close: true,
            ..greeting
        };
        assert!(line(&close).contains("--header Connection: close"));
        let other = Ask {
            tls: true,
            path: "/body",
            script: Some(Path::new("up.lua")),
            ..greeting
        };
        assert!(line(&other).ends_with("--script up.lua https://127.0.0.1:8080/body"));
    }
}
