//! Servers under load from `wrk`.

use super::usage::{children_time, processor_time};
use super::{Driver, Round, Sample};
use crate::process::Process;
use crate::protocol::{Line, Refusal};
use anyhow::{Context, Result, bail, ensure};
use bench_load::wrk::{Ask, SocketErrors};
use serde::Deserialize;
use std::ffi::OsString;
use std::process::{Command, Stdio};
use std::time::Duration;

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
        let ask = self.ask(port(process)?);
        let command = bench_load::wrk::command(&ask, self.connections.min(100), 1);
        run(command, round).map(drop)
    }

    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let port = port(process)?;
        check_greeting(round, port, self.close)?;
        let ask = self.ask(port);
        let (answers, costs) = measured(process, || {
            ask_again_and_again(round, &ask, self.connections, self.seconds)
        })?;
        let requests = Sample {
            remark: answers.remark,
            ..Sample::new("requests", answers.per_second)
        };
        Ok([requests].into_iter().chain(costs).collect())
    }
}

impl Http {
    fn ask(&self, port: u16) -> Ask<'static> {
        Ask {
            close: self.close,
            ..Ask::greeting(port)
        }
    }
}

/// What a load was answered.
pub struct Answers {
    pub requests: u64,
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// The processor time that the client took.
    pub client: Duration,
    pub remark: Option<String>,
}

/// Has a server be asked. Returns its answers, and what they cost: latencies, and per request the
/// processor time of the server and of the client.
pub fn measured(
    process: &Process,
    ask: impl FnOnce() -> Result<Answers>,
) -> Result<(Answers, [Sample; 4])> {
    let before = processor_time(process.id())?;
    let answers = ask()?;
    let taken = processor_time(process.id())?.saturating_sub(before);
    let per_request = |time: Duration| time.as_secs_f64() * 1e6 / answers.requests as f64;
    let costs = [
        Sample::new("p50", answers.p50_ms),
        Sample::new("p99", answers.p99_ms),
        Sample::new("processor", per_request(taken)),
        Sample::new("of the client", per_request(answers.client)),
    ];
    Ok((answers, costs))
}

/// Has `wrk` ask the same for some seconds.
///
/// # Errors
///
/// If there is an answer that is an error, or none at all.
pub fn ask_again_and_again(
    round: &Round,
    ask: &Ask,
    connections: u32,
    seconds: u32,
) -> Result<Answers> {
    let command = bench_load::wrk::command(ask, connections, seconds);
    let (output, client) = run_timed(command, round)?;
    let result = bench_load::wrk::parse(&output)?;
    ensure!(
        result.non_2xx == 0,
        "{} answers were errors",
        result.non_2xx
    );
    ensure!(result.requests > 0, "no request was answered");
    let SocketErrors {
        connect,
        read,
        write,
        timeout,
    } = result.errors;
    let lost = connect + read + write + timeout;
    Ok(Answers {
        requests: result.requests,
        per_second: result.requests_per_second,
        p50_ms: result.p50_ms,
        p99_ms: result.p99_ms,
        client,
        remark: (lost > 0).then(|| {
            format!(
                "socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}"
            )
        }),
    })
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

/// Makes sure that the server greets as it should, which the load's client does not look at, and
/// that it closes the connection if it is told to: else `wrk` would use it again.
fn check_greeting(round: &Round, port: u16, close: bool) -> Result<()> {
    let more: &[OsString] = if close { &["--close".into()] } else { &[] };
    check_answer(round, port, more, "Hello, World!").map_err(|error| match close {
        true => Refusal(format!(
            "it does not answer and close the connection when told to: {error:#}"
        ))
        .into(),
        false => error,
    })
}

/// Makes sure that a request is answered with status 200 and this body. `more` is what our own
/// client is told of the request.
pub fn check_answer(round: &Round, port: u16, more: &[OsString], body: &str) -> Result<()> {
    #[derive(Deserialize)]
    struct Answer {
        status: u16,
        body: String,
    }
    let mut command = Command::new(round.load);
    command.args(["get", "--port", &port.to_string()]);
    command.args(more);
    let output = run(command, round)?;
    let answer: Answer =
        serde_json::from_str(&output).with_context(|| format!("its answer: {output:.200}"))?;
    ensure!(
        answer.status == 200 && answer.body == body,
        "it answered {} {:.60?}, {} bytes",
        answer.status,
        answer.body,
        answer.body.len()
    );
    Ok(())
}

/// Does what [`run`] does; gives the client's processor time as well.
pub fn run_timed(command: Command, round: &Round) -> Result<(String, Duration)> {
    let before = children_time()?;
    let printed = run(command, round)?;
    Ok((printed, children_time()?.saturating_sub(before)))
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
