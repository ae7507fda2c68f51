//! What the peers in Rust share: their side of the protocol of `bench/PROTOCOL.md`, and the
//! computation that is the same in every language. Nothing here starts a thread.

pub mod actors;
mod certificate;
mod params;
mod scopes;

pub use certificate::Certificate;
pub use params::Params;
pub use scopes::{LONG, Scopes};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use std::io::{self, BufRead, Write};
use std::process::ExitCode;
use std::time::{Duration, Instant};

/// A workload, ready to do its work any number of times.
pub type Workload = Box<dyn FnMut(&mut Round) -> Result<()>>;

/// The whole of a peer's `main`: finds the workload that the command line names, and does a round
/// of it for each that the harness asks for.
///
/// `version` is what is measured, with its version. `find` makes the workload of a name, `None` if
/// it has no such workload; it may also serve until [`until_end_of_input`] returns, in which case
/// no rounds follow.
pub fn run(
    peer: &str,
    version: &str,
    find: impl FnOnce(&str, &Params) -> Option<Result<Workload>>,
) -> ExitCode {
    run_with(peer, version, std::env::args().skip(1), find)
}

/// [`run`] with other arguments than the command line's.
pub fn run_with(
    peer: &str,
    version: &str,
    mut args: impl Iterator<Item = String>,
    find: impl FnOnce(&str, &Params) -> Option<Result<Workload>>,
) -> ExitCode {
    print(&json!({"peer": peer, "version": version}));
    let name = args.next().unwrap_or_default();
    let workload = Params::parse(args).and_then(|params| match find(&name, &params) {
        Some(workload) => workload,
        None => bail!("{peer} has no workload {name:?}"),
    });
    match workload {
        Ok(workload) => rounds(workload),
        Err(error) => fail(&error, 2),
    }
}

fn rounds(mut workload: Workload) -> ExitCode {
    loop {
        match next_word().as_deref() {
            Ok("round") => {}
            Ok("") => return ExitCode::SUCCESS,
            other => return fail(&anyhow::anyhow!("expected round, got {other:?}"), 2),
        }
        if let Err(error) = workload(&mut Round(())) {
            return fail(&error, 1);
        }
        print(&json!({"end": true}));
    }
}

fn fail(error: &anyhow::Error, code: u8) -> ExitCode {
    print(&json!({"error": format!("{error:#}")}));
    ExitCode::from(code)
}

/// A round under way: where its numbers go.
pub struct Round(());

/// What the harness says to a peer that stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// Go on.
    Go,
    /// Do this many more of the same first.
    More(u64),
}

impl Round {
    /// Reports a number, with the check of the work: what came out, and what must.
    pub fn metric(&mut self, metric: &str, value: f64, unit: &str, done: u64, due: u64) {
        print(&json!({"metric": metric, "value": value, "unit": unit, "done": done, "due": due}));
    }

    /// Reports that a number cannot be had, and why.
    pub fn skip(&mut self, metric: &str, why: &str) {
        print(&json!({"metric": metric, "skip": why}));
    }

    /// Stands still, to be looked at from outside; gives the answer, and for how long it stood.
    ///
    /// # Errors
    ///
    /// If the harness says something else than that it may go on.
    pub fn at(&mut self, place: &str, count: u64) -> Result<(Answer, Duration)> {
        let start = Instant::now();
        print(&json!({"at": place, "count": count}));
        let word = next_word()?;
        let more = word
            .strip_prefix("more ")
            .and_then(|count| count.parse().ok());
        let answer = match (word.as_str(), more) {
            ("go", _) => Answer::Go,
            (_, Some(count)) => Answer::More(count),
            _ => bail!("expected go, or more and a number, got {word:?}"),
        };
        Ok((answer, start.elapsed()))
    }
}

/// Tells that a server is ready on this port.
pub fn listening(port: u16) {
    print(&json!({"listening": port}));
}

/// Waits, on the calling thread, until the harness has no more to say.
pub fn until_end_of_input() {
    // An error is as good as the end.
    let _ = io::copy(&mut io::stdin().lock(), &mut io::sink());
}

fn print(line: &Value) {
    let mut stdout = io::stdout().lock();
    // The harness is gone when this fails, and end of input will end the peer.
    let _ = writeln!(stdout, "{line}").and_then(|()| stdout.flush());
}

/// The next line without white space; empty at the end of input.
fn next_word() -> Result<String> {
    let mut line = String::new();
    let read = io::stdin().lock().read_line(&mut line);
    read.context("cannot read standard input")?;
    Ok(line.trim().to_owned())
}

/// The computation of the workloads that compute: as many steps of a shift-register generator.
pub fn compute(iterations: u64, seed: u64) -> u64 {
    let mut x = seed | 1;
    for _ in 0..iterations {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
    }
    x
}

/// The sum of 0 … n−1.
pub fn sum_below(n: u64) -> u64 {
    n * n.saturating_sub(1) / 2
}

/// Nanoseconds for each of `count` equal pieces of work.
pub fn nanos_per(elapsed: Duration, count: u64) -> f64 {
    elapsed.as_nanos() as f64 / count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every language computes this number; another one would mean that it does other work.
    #[test]
    fn the_computation_is_the_agreed_one() {
        assert_eq!(compute(0, 6), 7);
        assert_eq!(compute(1, 0), 1082269761);
        assert_eq!(compute(1000, 7), 15073333303738932546);
    }

    #[test]
    fn numbers_are_added_up() {
        assert_eq!((sum_below(0), sum_below(1), sum_below(4)), (0, 0, 6));
    }

    #[test]
    fn time_is_divided() {
        assert_eq!(nanos_per(Duration::from_micros(3), 2), 1500.0);
    }
}
