//! Measures pirn: `cargo run --release -p bench -- --help`. `README.md` explains what and why.
//!
//! One process supervises (this file and `report`); each workload runs in a process of its own
//! (`process`), so that none inherits another's heap, stacks or carriers, and a crash or a hang
//! of one costs only its own rows. A worker prints the samples of each round as a line of JSON,
//! which is all the supervisor knows of it.

mod memory;
mod place;
mod process;
mod report;
mod stats;
mod workload;
mod workloads;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use clap::builder::PossibleValuesParser;
use report::{Failure, Report};
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use workload::{Size, Workload};

/// Measures pirn's virtual threads and prints a table: median, least and most of all rounds but
/// the first, with the goal beside.
#[derive(Parser)]
#[command(name = "bench")]
struct Args {
    /// Workloads to run; all of them if none is named
    #[arg(value_parser = PossibleValuesParser::new(workloads::names()), hide_possible_values = true)]
    names: Vec<String>,

    /// Rounds to measure, after one more to warm up
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    rounds: u32,

    /// Write the results to FILE as well
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,

    /// List the workloads and stop
    #[arg(long)]
    list: bool,

    /// Small sizes, to try the program itself out; the numbers mean nothing
    #[arg(long)]
    quick: bool,

    /// Give a workload up when a round takes longer than this
    #[arg(long, value_name = "SECONDS", default_value = "120", value_parser = seconds)]
    timeout: Duration,

    /// (internal) Run the rounds of this workload here and print their samples
    #[arg(long, hide = true, value_name = "NAME")]
    worker: Option<String>,

    /// (internal) Run the helper process of this workload here
    #[arg(long, hide = true, value_name = "NAME", requires = "count")]
    helper: Option<String>,

    /// (internal) What the helper is to do how often
    #[arg(long, hide = true, value_name = "N")]
    count: Option<usize>,
}

impl Args {
    fn size(&self) -> Size {
        if self.quick { Size::Quick } else { Size::Full }
    }
}

fn seconds(text: &str) -> Result<Duration> {
    let timeout = Duration::try_from_secs_f64(text.parse()?)?;
    ensure!(!timeout.is_zero(), "no round takes no time");
    Ok(timeout)
}

fn main() -> ExitCode {
    let args = Args::parse();
    let done = if args.list {
        list();
        Ok(())
    } else if let Some(name) = &args.worker {
        workloads::find(name).and_then(|w| process::work(w, args.rounds, args.size(), args.timeout))
    } else if let (Some(name), Some(count)) = (&args.helper, args.count) {
        workloads::find(name).and_then(|w| process::help(w, count, args.timeout))
    } else {
        supervise(&args)
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn list() {
    for workload in workloads::ALL {
        println!("{:<20} {}", workload.name(), workload.about());
    }
}

/// Runs the chosen workloads, each in its process, and reports.
fn supervise(args: &Args) -> Result<()> {
    let mut report = Report::new(args.rounds, args.size());
    for workload in chosen(&args.names) {
        match process::measure(workload, args.rounds, args.size(), args.timeout) {
            Ok(rounds) => report.add(workload.name(), &rounds)?,
            Err(error) => report.failures.push(Failure::new(workload.name(), &error)),
        }
    }
    print!("{report}");
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(&report)? + "\n";
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    let failed = report.failures.len();
    ensure!(failed == 0, "{failed} of the workloads failed (see above)");
    Ok(())
}

/// The named workloads in the order of the list, which makes tables easy to compare.
fn chosen(names: &[String]) -> impl Iterator<Item = &'static dyn Workload> {
    let named = |w: &dyn Workload| names.is_empty() || names.iter().any(|n| n == w.name());
    workloads::ALL.iter().copied().filter(move |w| named(*w))
}
