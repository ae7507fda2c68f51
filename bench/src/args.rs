//! The command line.

use anyhow::{Context, Result, ensure};
use clap::Parser;
use std::path::PathBuf;
use std::time::Duration;

/// Measures Pirn's virtual threads beside the threads and tasks of the JDK, Go, tokio, may and the
/// operating system.
///
/// The peers take turns round by round. Prints median, least and most of each peer's rounds, and
/// the ratio of Pirn to the best of the others.
#[derive(Parser)]
#[command(name = "bench")]
pub struct Args {
    /// Workloads to run; all of them if none is named
    #[arg(value_name = "WORKLOAD")]
    pub workloads: Vec<String>,

    /// Peers to run, with commas between; all of them if none is named
    #[arg(long, value_name = "PEER,…", value_delimiter = ',')]
    pub peers: Vec<String>,

    /// Rounds to measure, the same for all workloads
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: Option<u32>,

    /// Write the results to FILE as JSON
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,

    /// Write a table and the losses to FILE in Markdown, as README.md has them
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,

    /// Do not measure, but show the results that an earlier run wrote with --json
    #[arg(long, value_name = "FILE", conflicts_with_all = ["workloads", "peers", "rounds", "quick", "set"])]
    pub from: Option<PathBuf>,

    /// Compare Pirn's numbers with those that an earlier run wrote with --json to FILE, and fail if
    /// one is worse by more than --loss
    #[arg(long, value_name = "FILE")]
    pub against: Option<PathBuf>,

    /// By how many per cent a median may be worse than in --against
    #[arg(long, value_name = "PERCENT", default_value = "10", requires = "against", value_parser = per_cent)]
    pub loss: f64,

    /// List the workloads and peers, and stop
    #[arg(long)]
    pub list: bool,

    /// Small sizes, to try the program itself out; the numbers mean nothing
    #[arg(long)]
    pub quick: bool,

    /// Another value for a parameter of the workloads that have it
    #[arg(long, value_name = "KEY=NUMBER", value_parser = pair)]
    pub set: Vec<(String, u64)>,

    /// The budget, in GiB, for the largest number of parked threads
    #[arg(long, value_name = "GIB", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=4096))]
    pub memory: u64,

    /// Give a peer up when a round takes longer than this
    #[arg(long, value_name = "SECONDS", default_value = "60", value_parser = seconds)]
    pub timeout: Duration,
}

fn pair(text: &str) -> Result<(String, u64)> {
    let (key, value) = text.split_once('=').context("it is not KEY=NUMBER")?;
    Ok((key.into(), value.parse()?))
}

fn per_cent(text: &str) -> Result<f64> {
    let loss: f64 = text.trim_end_matches('%').parse()?;
    ensure!(
        loss.is_finite() && loss >= 0.0,
        "it is not a number of per cent from 0 on"
    );
    Ok(loss)
}

fn seconds(text: &str) -> Result<Duration> {
    let timeout = Duration::try_from_secs_f64(text.parse()?)?;
    ensure!(!timeout.is_zero(), "no round takes no time");
    Ok(timeout)
}
