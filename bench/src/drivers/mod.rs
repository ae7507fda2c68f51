//! Drivers: they make a peer work in a round, and measure it from outside meanwhile.
//!
//! | driver          | measures                                                                   |
//! |-----------------|----------------------------------------------------------------------------|
//! | `itself`        | nothing: the peer does                                                     |
//! | `whole-process` | from the start of the process to its end                                   |
//! | `usage`         | OS threads and memory at their highest, and processor time                 |
//! | `parked`        | memory while threads wait, divided by their number (memory.rs)             |
//! | `most-parked`   | how many threads fit into `mib` MiB (memory.rs)                            |
//! | `ask`           | a server that wrk or h2load asks as often as it can answer (ask.rs)        |
//! | `users`, `open` | a server under load from our own client, `peers/load` (load.rs)            |
//! | `redis`         | `redis-server`, which is under load from `redis-benchmark`                 |

mod ask;
mod load;
mod memory;
mod redis;
mod usage;

pub use load::Backend;

use crate::catalog::{Case, Driver, Params};
use crate::machine::Cpus;
use crate::peers::Peer;
use crate::process::Process;
use crate::protocol::{Line, Output, Refusal};
use anyhow::{Context, Result, bail, ensure};
use rcgen::{CertifiedKey, generate_simple_self_signed};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

/// What a driver needs to know about a round.
pub struct Round<'a> {
    pub case: &'a Case,
    pub peer: &'a Peer,
    /// The case's parameters, as this peer was given them.
    pub params: &'a Params,
    /// The parameters of the harness's side.
    pub client: &'a Params,
    /// The cores of clients.
    pub cpus: Cpus,
    /// The program that makes the load.
    pub load: &'a Path,
    /// For files of servers and clients.
    pub folder: &'a Path,
}

impl Round<'_> {
    /// Returns a parameter of the peer or of the client, or 0.
    fn get(&self, key: &str) -> u64 {
        self.params
            .get(key)
            .or_else(|| self.client.get(key))
            .unwrap_or(0)
    }

    /// Makes a started peer do a round, and returns the measurements: those that the case asks for,
    /// and perhaps others.
    ///
    /// # Errors
    ///
    /// If the work was not done, or not correctly: then there are no numbers.
    pub fn run(&self, process: &mut Process) -> Result<Vec<Sample>> {
        match self.case.driver {
            Driver::Itself => itself(process, self),
            Driver::WholeProcess => {
                itself(process, self)?;
                // The end of its input and its exit follow, a millisecond or few.
                let whole = process.started().elapsed();
                Ok(vec![Sample::new("whole process", whole.as_secs_f64())])
            }
            Driver::Usage => usage::round(process, self),
            Driver::Parked => memory::parked(process, self),
            Driver::MostParked => memory::most_parked(process, self),
            Driver::Ask => ask::round(process, self, self.get("seconds"), false),
            Driver::Users => load::users(process, self, false),
            Driver::Open => load::open(process, self, false),
            Driver::Redis => redis::round(process, self),
        }
    }

    /// Makes the peer do about the same before the first round that counts; servers get few
    /// connections, and for a short time.
    ///
    /// # Errors
    ///
    /// As [`run`](Round::run).
    pub fn warm_up(&self, process: &mut Process) -> Result<()> {
        let samples = match self.case.driver {
            Driver::Ask => ask::round(process, self, 1, true),
            Driver::Users => load::users(process, self, true),
            Driver::Open => load::open(process, self, true),
            _ => self.run(process),
        };
        samples.map(drop)
    }
}

/// Returns the maximum number of descriptors that a process needs: a server's for each connection
/// one, and one more if it calls a backend.
pub fn descriptors(case: &Case) -> u64 {
    let of = |key: &str| case.params.get(key).or_else(|| case.client.get(key));
    let each = 1 + u64::from(of("backend_ms").is_some());
    let connections = of("connections").filter(|_| case.driver.serves());
    64 + each * connections.unwrap_or(0)
}

/// Returns the environment of a peer: where it finds the certificate that it needs for TLS, which
/// is made anew for each run, signed by itself, for 127.0.0.1.
///
/// # Errors
///
/// If it cannot be made or written.
pub fn environment(params: &Params, folder: &Path) -> Result<Vec<(&'static str, PathBuf)>> {
    if params.get("tls").unwrap_or(0) == 0 {
        return Ok(Vec::new());
    }
    let (certificate, key) = (certificate(folder), folder.join("key.pem"));
    if !certificate.exists() {
        let CertifiedKey { cert, signing_key } =
            generate_simple_self_signed(["127.0.0.1".to_owned()])?;
        fs::write(&key, signing_key.serialize_pem())?;
        fs::write(&certificate, cert.pem())?;
    }
    Ok(vec![("BENCH_CERTIFICATE", certificate), ("BENCH_KEY", key)])
}

fn certificate(folder: &Path) -> PathBuf {
    folder.join("certificate.pem")
}

/// A number of a round.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub metric: String,
    /// The number, or why it is missing.
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

    fn remark(self, remark: Option<String>) -> Sample {
        Sample { remark, ..self }
    }
}

/// The peer measures itself. Sleepers print their numbers, and no other peer prints anything.
fn itself(process: &mut Process, round: &Round) -> Result<Vec<Sample>> {
    let mut output = Output::default();
    let samples = work(process, &mut output, |_, at, _| {
        bail!("it stands still at {at:?}, where it should not")
    })?;
    let expected = match &*round.case.call {
        "sleepers" => Output::of_numbers_below(round.get("threads")),
        _ => Output::default(),
    };
    ensure!(
        output == expected,
        "it printed {} lines, {} of them no numbers; they are not the {} that were to come",
        output.lines,
        output.odd,
        expected.lines
    );
    Ok(samples)
}

/// Tells a peer to do a round and collects its numbers. When the peer stands still, `look` decides
/// how it goes on.
fn work(
    process: &mut Process,
    output: &mut Output,
    mut look: impl FnMut(&Process, &str, u64) -> Result<String>,
) -> Result<Vec<Sample>> {
    let mut samples = Vec::new();
    process.tell("round")?;
    loop {
        match process.next_with_output(output)? {
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
                samples.push(Sample {
                    done: Some(done),
                    ..Sample::new(&metric, value)
                });
            }
            Line::Skip { metric, skip } => samples.push(Sample {
                value: Err(skip),
                ..Sample::new(&metric, 0.0)
            }),
            Line::At { at, count } => {
                let answer = look(process, &at, count)?;
                process.tell(&answer)?;
            }
            Line::End { .. } => return Ok(samples),
            Line::Error { error } => bail!(Refusal(error)),
            other => bail!("it said {other:?} in a round"),
        }
    }
}

/// The port of a server, which is told only once.
fn port(process: &mut Process) -> Result<u16> {
    if process.port == 0 {
        process.port = match process.next()? {
            Line::Listening { listening } => listening,
            Line::Error { error } => bail!(Refusal(error)),
            other => bail!("it said {other:?} instead of its port"),
        };
    }
    Ok(process.port)
}

/// Runs a client on its cores; gives what it prints.
fn run(mut command: Command, round: &Round) -> Result<String> {
    command.stdin(Stdio::null());
    let name = command.get_program().to_string_lossy().into_owned();
    let output = round.cpus.during(|| command.output());
    let output = output.with_context(|| format!("cannot start {name}"))?;
    let printed = String::from_utf8_lossy(&output.stdout).into_owned();
    if !output.status.success() {
        let complaint = String::from_utf8_lossy(&output.stderr);
        bail!("the client failed: {} {}", printed.trim(), complaint.trim());
    }
    Ok(printed)
}

/// Measures what a server takes while `f` asks it: per request, in microseconds.
fn per_request<T>(
    process: &Process,
    f: impl FnOnce() -> Result<T>,
    requests: impl FnOnce(&T) -> u64,
) -> Result<(T, f64)> {
    let before = usage::processor_time(process.id())?;
    let value = f()?;
    let taken = usage::processor_time(process.id())?.saturating_sub(before);
    let micros = taken.as_secs_f64() * 1e6 / requests(&value) as f64;
    Ok((value, micros))
}

/// Waits until `done`, for a minute at most.
fn wait_until(mut done: impl FnMut() -> bool, what: &str) -> Result<()> {
    let start = Instant::now();
    while !done() {
        ensure!(start.elapsed().as_secs() < 60, "{what}");
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    Ok(())
}
