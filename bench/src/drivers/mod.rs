//! Drivers: they make a peer work in a round, and measure it from outside meanwhile.

mod h2load;
mod http_server;
mod load;
mod memory;
mod redis;
mod served;
mod usage;
mod wrk;

pub use http_server::{HttpServer, What};
pub use load::{Backend, Gateway, Users};
pub use memory::{MostParked, Parked};
pub use redis::Redis;
pub use served::Served;
pub use usage::{Usage, WholeProcess};
pub use wrk::Http;

use crate::catalog::{Case, Params};
use crate::machine::Cpus;
use crate::peers::Peer;
use crate::process::Process;
use crate::protocol::{Line, Output, Refusal};
use anyhow::{Context, Result, bail, ensure};
use std::path::{Path, PathBuf};

/// A kind of round.
pub trait Driver {
    /// Makes a started peer do a round, and returns the measurements.
    ///
    /// # Errors
    ///
    /// If the work was not done, or not correctly: then there are no numbers.
    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>>;

    /// How long the peer is busy before the first round that counts, for a peer that must warm up.
    fn warm_up(&self, process: &mut Process, round: &Round) -> Result<()> {
        self.round(process, round).map(drop)
    }

    /// Whether the peer is a server, which is not asked for rounds.
    fn serves(&self) -> bool {
        false
    }

    /// Returns the program that it runs and that is not built here.
    fn program(&self) -> Option<&'static str> {
        None
    }

    /// Returns the environment variables of the peer.
    ///
    /// # Errors
    ///
    /// If what they name cannot be made.
    fn environment(&self, _params: &Params) -> Result<Vec<(&'static str, PathBuf)>> {
        Ok(Vec::new())
    }

    /// Returns the maximum number of descriptors that a process needs for it.
    fn descriptors(&self) -> u64 {
        64
    }
}

/// What a driver needs to know about a round.
pub struct Round<'a> {
    pub case: &'a Case,
    pub peer: &'a Peer,
    /// The case's parameters, as this peer was given them.
    pub params: &'a Params,
    /// The cores of clients.
    pub client: Cpus,
    /// The program that makes the load.
    pub load: &'a Path,
}

impl Round<'_> {
    /// Returns a parameter of the peer.
    fn param(&self, key: &str) -> Result<u64> {
        self.params
            .get(key)
            .with_context(|| format!("the parameter {key} is missing"))
    }
}

/// A number of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub metric: String,
    /// The number, or why there is none.
    pub value: Result<f64, String>,
    /// A remark for the reader.
    pub remark: Option<String>,
    /// The work that was done, which must be the same for all peers with the same parameters.
    pub done: Option<u64>,
}

impl Sample {
    pub fn new(metric: &str, value: f64) -> Sample {
        Sample {
            metric: metric.into(),
            value: Ok(value),
            remark: None,
            done: None,
        }
    }
}

/// The peer measures itself.
pub struct Itself;

impl Driver for Itself {
    fn round(&self, process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
        let work = work(process, |_, at, _| {
            bail!("it stands still at {at:?}, where it should not")
        })?;
        check_output(&work.output, round.params, round.case.call)?;
        Ok(work.samples)
    }
}

/// A round that a peer has done.
struct Work {
    samples: Vec<Sample>,
    output: Output,
}

/// Tells a peer to do a round and collects its numbers. When the peer stands still, `look` decides
/// how it goes on.
fn work(
    process: &mut Process,
    mut look: impl FnMut(&Process, &str, u64) -> Result<String>,
) -> Result<Work> {
    let mut work = Work {
        samples: Vec::new(),
        output: Output::default(),
    };
    process.tell("round")?;
    loop {
        match process.next_with_output(&mut work.output)? {
            Line::Number {
                metric,
                value,
                done,
                due,
                ..
            } => {
                ensure!(
                    done == due,
                    "{metric}: the work was not done: {done} came of it, not {due}"
                );
                ensure!(value.is_finite() && value >= 0.0, "{metric} is {value}");
                work.samples.push(Sample {
                    done: Some(done),
                    ..Sample::new(&metric, value)
                });
            }
            Line::Skip { metric, skip } => work.samples.push(Sample {
                value: Err(skip),
                ..Sample::new(&metric, 0.0)
            }),
            Line::At { at, count } => {
                let answer = look(process, &at, count)?;
                process.tell(&answer)?;
            }
            Line::End { .. } => return Ok(work),
            Line::Error { error } => bail!(Refusal(error)),
            other => bail!("it said {other:?} in a round"),
        }
    }
}

/// Sleepers print their numbers, and nobody else prints anything.
fn check_output(output: &Output, params: &Params, call: &str) -> Result<()> {
    let expected = match call {
        "sleepers" => Output::of_numbers_below(params.get("threads").unwrap_or(0)),
        _ => Output::default(),
    };
    ensure!(
        *output == expected,
        "it printed {} lines, {} of them no numbers; they are not the {} that were to come",
        output.lines,
        output.odd,
        expected.lines
    );
    Ok(())
}
