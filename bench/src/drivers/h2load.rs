//! Servers under load from `h2load`, over HTTP/2 by prior knowledge.

use super::Round;
use super::wrk::{Answers, run, run_timed};
use anyhow::{Context, Result, ensure};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Asks for a greeting over this many connections, each with this many streams.
pub fn load(
    round: &Round,
    port: u16,
    (connections, streams): (u64, u64),
    seconds: u32,
    log: &Path,
) -> Result<Answers> {
    // h2load appends to a log that is there.
    if log.exists() {
        fs::remove_file(log)?;
    }
    let command = bench_load::h2load::command(port, connections, streams, seconds, log);
    let (output, client) = run_timed(command, round)?;
    let log = fs::read_to_string(log).context("h2load wrote no log")?;
    let result = bench_load::h2load::parse(&output, &log)?;
    ensure!(
        result.not_200 == 0,
        "{} answers were errors",
        result.not_200
    );
    let lost = result.lost;
    Ok(Answers {
        requests: result.requests,
        per_second: result.requests_per_second,
        p50_ms: result.p50_ms,
        p99_ms: result.p99_ms,
        client,
        remark: (lost > 0).then(|| format!("{lost} requests were lost")),
    })
}

/// Makes sure that `GET /` is answered with this body over HTTP/2, by the client that comes with
/// `h2load`. The statuses are checked when the load is measured.
pub fn check_answer(round: &Round, port: u16, body: &str) -> Result<()> {
    let mut command = Command::new("nghttp");
    command.args(["--timeout=5", &format!("http://127.0.0.1:{port}/")]);
    let answer = run(command, round)?;
    ensure!(
        answer == body,
        "it answered {answer:.60?} over HTTP/2, and not {body:?}"
    );
    Ok(())
}
