//! A server that is asked for one thing again and again, by `wrk` or `h2load`: what it answers, and
//! the processor time that it takes for it.
//!
//! Over how many `connections`, for how many `seconds`; `close`: one for each request; `tls`;
//! `streams` of HTTP/2 on each; a `body` that is downloaded, or with `upload` uploaded. None: a
//! greeting.

use super::usage::children_time;
use super::{Round, Sample, certificate, per_request, port, run};
use crate::process::Process;
use crate::protocol::Refusal;
use anyhow::{Context, Result, ensure};
use bench_load::{h2load, wrk};
use serde::Deserialize;
use std::fs;
use std::process::Command;

const GREETING: &str = "Hello, World!";

pub fn round(
    process: &mut Process,
    round: &Round,
    seconds: u64,
    warm_up: bool,
) -> Result<Vec<Sample>> {
    let port = port(process)?;
    let mut connections = round.get("connections");
    if warm_up {
        connections = connections.min(100);
    } else {
        check(round, port)?;
    }
    let before = children_time()?;
    let ask = || ask(round, port, connections, seconds);
    let (answers, micros) = per_request(process, ask, |answers| answers.requests)?;
    let client = children_time()?.saturating_sub(before).as_secs_f64() * 1e6;
    let megabytes = answers.per_second * round.get("body") as f64 / 1e6;
    let lost = answers.lost.clone();
    Ok(vec![
        Sample::new("requests", answers.per_second).remark(lost.clone()),
        Sample::new("throughput", megabytes).remark(lost),
        Sample::new("p50", answers.p50_ms),
        Sample::new("p99", answers.p99_ms),
        Sample::new("processor", micros),
        Sample::new("of the client", client / answers.requests as f64),
    ])
}

/// The answers that a load has got.
struct Answers {
    requests: u64,
    per_second: f64,
    p50_ms: f64,
    p99_ms: f64,
    /// The requests without an answer, in words.
    lost: Option<String>,
}

/// Asks for some seconds.
///
/// # Errors
///
/// If there is an answer that is an error, or none at all.
fn ask(round: &Round, port: u16, connections: u64, seconds: u64) -> Result<Answers> {
    let (answers, errors) = match round.get("streams") {
        0 => by_wrk(round, port, connections, seconds)?,
        streams => by_h2load(round, port, (connections, streams), seconds)?,
    };
    ensure!(errors == 0, "{errors} answers were errors");
    ensure!(answers.requests > 0, "no request was answered");
    Ok(answers)
}

fn by_wrk(round: &Round, port: u16, connections: u64, seconds: u64) -> Result<(Answers, u64)> {
    let body = round.get("body");
    let script = round.folder.join("wrk.lua");
    fs::write(
        &script,
        wrk::script((round.get("upload") != 0).then_some(body)),
    )?;
    let ask = wrk::Ask {
        port,
        tls: round.get("tls") != 0,
        path: if body == 0 { "/" } else { "/body" },
        close: round.get("close") != 0,
        script: &script,
    };
    let output = run(wrk::command(&ask, connections, seconds), round)?;
    let result = wrk::parse(&output)?;
    let wrk::SocketErrors {
        connect,
        read,
        write,
        timeout,
    } = result.errors;
    let lost = (connect + read + write + timeout > 0).then(|| {
        format!("socket errors: connect {connect}, read {read}, write {write}, timeout {timeout}")
    });
    let answers = Answers {
        requests: result.requests,
        per_second: result.requests_per_second(),
        p50_ms: result.p50_ms,
        p99_ms: result.p99_ms,
        lost,
    };
    Ok((answers, result.non_2xx))
}

fn by_h2load(round: &Round, port: u16, many: (u64, u64), seconds: u64) -> Result<(Answers, u64)> {
    let log = round.folder.join("h2load.log");
    // h2load appends to a log that is there.
    if log.exists() {
        fs::remove_file(&log)?;
    }
    let output = run(h2load::command(port, many.0, many.1, seconds, &log), round)?;
    let log = fs::read_to_string(&log).context("h2load wrote no log")?;
    let result = h2load::parse(&output, &log)?;
    let answers = Answers {
        requests: result.requests,
        per_second: result.requests_per_second,
        p50_ms: result.p50_ms,
        p99_ms: result.p99_ms,
        lost: (result.lost > 0).then(|| format!("{} requests were lost", result.lost)),
    };
    Ok((answers, result.not_200))
}

/// Makes sure that the server answers as it should, which the load's clients do not look at, and
/// that it closes the connection if it is told to: else `wrk` would use it again.
fn check(round: &Round, port: u16) -> Result<()> {
    #[derive(Deserialize)]
    struct Answer {
        status: u16,
        body: String,
    }
    if round.get("streams") > 0 {
        let mut command = Command::new("nghttp");
        command.args(["--timeout=5", &format!("http://127.0.0.1:{port}/")]);
        let body = run(command, round)?;
        ensure!(
            body == GREETING,
            "it answered {body:.60?} over HTTP/2, and not {GREETING:?}"
        );
        return Ok(());
    }
    let mut command = Command::new(round.load);
    command.args(["get", "--port", &port.to_string()]);
    if round.get("tls") != 0 {
        command.arg("--certificate").arg(certificate(round.folder));
    }
    let (close, length) = (round.get("close") != 0, round.get("body"));
    if close {
        command.arg("--close");
    }
    let body = match (length, round.get("upload")) {
        (0, _) => GREETING.to_owned(),
        (_, 0) => "x".repeat(usize::try_from(length)?),
        _ => length.to_string(),
    };
    if length > 0 {
        command.args(["--path", "/body"]);
    }
    if round.get("upload") != 0 {
        command.args(["--post", &body]);
    }
    let output = run(command, round).map_err(|error| match close {
        true => Refusal(format!(
            "it does not close the connection when told to: {error:#}"
        ))
        .into(),
        false => error,
    })?;
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
