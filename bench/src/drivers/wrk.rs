//! Servers under load from `wrk`.

use super::{Driver, Round, Sample};
use crate::process::Process;
use crate::protocol::{Line, Refusal};
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use std::process::{Command, Stdio};

/// Requests for a greeting, as many as the server can answer.
pub struct Http {
    pub connections: u32,
    pub seconds: u32,
    /// A connection for each request.
    pub close: bool,
}

impl Driver for Http {
    fn serves(&self) -> bool {
        true
    }

    fn program(&self) -> Option<&'static str> {
        Some("wrk")
    }

    fn descriptors(&self) -> u64 {
        u64::from(self.connections) + 64
    }

    fn warm_up(&self, process: &mut Process, round: &Round) -> Result<()> {
        let port = port(process)?;
        let command = bench_load::wrk::command(port, self.connections.min(100), 1, self.close);
        run(command, round).map(drop)
    }

    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let port = port(process)?;
        check_greeting(round, port, self.close)?;
        let command = bench_load::wrk::command(port, self.connections, self.seconds, self.close);
        let output = run(command, round)?;
        let result = bench_load::wrk::parse(&output)?;
        ensure!(
            result.non_2xx == 0,
            "{} answers were errors",
            result.non_2xx
        );
        ensure!(result.requests > 0, "no request was answered");
        let bench_load::wrk::SocketErrors {
            connect,
            read,
            write,
            timeout,
        } = result.errors;
        let lost = connect + read + write + timeout;
        Ok(vec![
            Sample {
                remark: (lost > 0).then(|| {
                    format!(
                        "socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}"
                    )
                }),
                ..Sample::new("requests", result.requests_per_second)
            },
            Sample::new("p50", result.p50_ms),
            Sample::new("p99", result.p99_ms),
        ])
    }
}

/// The port of a server, which is told only once.
pub fn port(process: &mut Process) -> Result<u16> {
    if process.port == 0 {
        process.port = match process.next()? {
            Line::Listening { listening } => listening,
            Line::Error { error } => bail!(Refusal(error)),
            other => bail!("it said {other:?} instead of its port"),
        };
    }
    Ok(process.port)
}

/// Makes sure that the server answers as it should, which the load's client does not look at, and
/// that it closes the connection if it is told to: else `wrk` would use it again.
fn check_greeting(round: &Round, port: u16, close: bool) -> Result<()> {
    #[derive(Deserialize)]
    struct Answer {
        status: u16,
        body: String,
    }
    let mut command = Command::new(round.load);
    command.args(["get", "--port", &port.to_string()]);
    command.args(close.then_some("--close"));
    let output = run(command, round).map_err(|error| match close {
        true => Refusal(format!(
            "it does not answer and close the connection when told to: {error:#}"
        ))
        .into(),
        false => error,
    })?;
    let answer: Answer =
        serde_json::from_str(&output).with_context(|| format!("its answer: {output}"))?;
    ensure!(
        answer.status == 200 && answer.body == "Hello, World!",
        "it answered {} {:?}",
        answer.status,
        answer.body
    );
    Ok(())
}

/// Runs a client on its cores; gives what it prints.
pub fn run(mut command: Command, round: &Round) -> Result<String> {
    command.stdin(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let output = round.client.during(|| command.output());
    let output = output.with_context(|| match name.as_str() {
        "wrk" => "wrk, which makes the load, is not installed (apt-get install wrk)".to_owned(),
        _ => format!("cannot start {name}"),
    })?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("the client failed: {} {}", printed.trim(), complaint.trim());
    }
    Ok(printed)
}
