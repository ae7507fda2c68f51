//! The processes of a measurement: the supervisor starts a worker for each workload, and some
//! workers start a helper for each round. All are this program, told apart by hidden options.
//!
//! Workers and helpers have a watchdog, so none outlives a hang; the supervisor only waits.

use crate::memory;
use crate::workload::{Sample, Size, Workload};
use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::io::{BufRead, BufReader, IsTerminal, Write};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::time::Duration;

/// A line of a worker's output, as JSON.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum Line {
    /// A round is done.
    Round(Vec<Sample>),
    /// A round failed, and there will be no more.
    Failure { error: String },
}

/// Has a worker run a workload, and gives the samples of each round but the one for warming up.
pub fn measure(
    workload: &dyn Workload,
    rounds: u32,
    size: Size,
    timeout: Duration,
) -> Result<Vec<Vec<Sample>>> {
    let mut command = this_program(timeout)?;
    command.args(["--worker", workload.name(), "--rounds", &rounds.to_string()]);
    command.args(size.pick(None, Some("--quick")));
    command.envs(workload.environment().iter().copied());
    let mut child = command.spawn().context("cannot start its process")?;
    let samples = read_rounds(&mut child, workload.name(), rounds);
    let status = child.wait()?;
    // First, since it explains why samples are missing.
    ensure!(
        status.success(),
        "its process ended with {status} (see above)"
    );
    let mut samples = samples?;
    let got = samples.len();
    ensure!(
        got == rounds as usize + 1,
        "{got} rounds came of {rounds} and one to warm up"
    );
    samples.remove(0);
    Ok(samples)
}

/// The rounds of a worker, a line each.
fn read_rounds(worker: &mut Child, name: &str, rounds: u32) -> Result<Vec<Vec<Sample>>> {
    let output = worker.stdout.take().context("no pipe to its process")?;
    let mut samples = Vec::new();
    let progress = Progress::new(name, rounds);
    progress.show(0);
    for line in BufReader::new(output).lines() {
        let line = line?;
        match serde_json::from_str(&line).with_context(|| format!("bad line {line:?}"))? {
            Line::Round(round) => samples.push(round),
            Line::Failure { error } => bail!(error),
        }
        progress.show(samples.len());
    }
    Ok(samples)
}

/// A line on the terminal that tells how far a worker has come.
struct Progress<'a> {
    name: &'a str,
    rounds: u32,
    visible: bool,
}

impl Progress<'_> {
    fn new(name: &str, rounds: u32) -> Progress<'_> {
        Progress {
            name,
            rounds,
            visible: std::io::stderr().is_terminal(),
        }
    }

    fn show(&self, done: usize) {
        if self.visible {
            eprint!(
                "\r\x1b[K{}: {done} of {} rounds",
                self.name,
                self.rounds + 1
            );
        }
    }
}

impl Drop for Progress<'_> {
    fn drop(&mut self) {
        if self.visible {
            eprint!("\r\x1b[K");
        }
    }
}

/// The worker: runs all rounds and prints a line for each.
pub fn work(workload: &dyn Workload, rounds: u32, size: Size, timeout: Duration) -> Result<()> {
    let watchdog = Watchdog::start(format!("a round of {}", workload.name()), timeout);
    if size == Size::Full {
        memory::warm(workload.warm_bytes());
    }
    for _ in 0..=rounds {
        watchdog.reset();
        match workload.round(size) {
            Ok(samples) => print(&Line::Round(samples))?,
            Err(error) => {
                return print(&Line::Failure {
                    error: format!("{error:#}"),
                });
            }
        }
    }
    Ok(())
}

fn print(line: &Line) -> Result<()> {
    writeln!(std::io::stdout().lock(), "{}", serde_json::to_string(line)?)?;
    Ok(())
}

/// The helper: does its part of one round.
pub fn help(workload: &dyn Workload, count: usize, timeout: Duration) -> Result<()> {
    let _watchdog = Watchdog::start(format!("the helper of {}", workload.name()), timeout);
    workload.helper(count)
}

/// Called in a worker: a command that starts the helper of a workload, its output a pipe.
pub fn helper(workload: &dyn Workload, count: usize) -> Result<Command> {
    let timeout = TIMEOUT.get().copied().context("not in a worker")?;
    let mut command = this_program(timeout)?;
    command.args(["--helper", workload.name(), "--count", &count.to_string()]);
    Ok(command)
}

fn this_program(timeout: Duration) -> Result<Command> {
    let program = std::env::current_exe().context("cannot find this program's file")?;
    let mut command = Command::new(program);
    command.args(["--timeout", &timeout.as_secs_f64().to_string()]);
    command.stdin(Stdio::null()).stdout(Stdio::piped());
    Ok(command)
}

/// The timeout this process was given.
static TIMEOUT: OnceLock<Duration> = OnceLock::new();

/// Aborts the process when it takes too long. Runs on a platform thread, so that it works while
/// all virtual threads are stuck.
struct Watchdog {
    resets: Sender<()>,
}

impl Watchdog {
    fn start(what: String, timeout: Duration) -> Watchdog {
        TIMEOUT.get_or_init(|| timeout);
        let (resets, reset) = mpsc::channel();
        std::thread::spawn(move || {
            loop {
                match reset.recv_timeout(timeout) {
                    Ok(()) => {}
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        eprintln!("bench: {what} is not done after {timeout:?}; giving up");
                        std::process::abort();
                    }
                }
            }
        });
        Watchdog { resets }
    }

    /// Begins the time anew.
    fn reset(&self) {
        // Cannot fail while the thread runs, and it runs while `self` lives.
        let _ = self.resets.send(());
    }
}
