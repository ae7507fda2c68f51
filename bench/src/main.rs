//! Measures Pirn beside what a user would pick instead: `cargo run --release -p bench -- --help`.
//! `README.md` explains what and why, `PROTOCOL.md` what the peers do.
//!
//! ```text
//!   catalog     what is measured, at which sizes
//!   peers       the peers: found, built
//!   runner      interleaves the peers round by round
//!   drivers     a round: the peer measures itself, or is looked at or loaded from outside
//!   process     a peer's process, and the lines it prints (protocol)
//!   programs    those that are not built here, and may be missing
//!   results     the numbers;  report: as a table and as a page
//!   against     the numbers, compared with those of an earlier run
//! ```

mod against;
mod args;
mod catalog;
mod certificate;
mod drivers;
mod machine;
mod memory;
mod notes;
mod peers;
mod process;
mod programs;
mod protocol;
mod report;
mod results;
mod runner;
mod stats;

use against::Comparison;
use anyhow::{Context as _, Result, ensure};
use args::Args;
use catalog::{Context, Size};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use machine::Machine;
use peers::{Builder, Known, Peer};
use results::{PeerInfo, Results};
use runner::Runner;
use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::{Duration, Instant};

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    if args.list {
        list();
        return Ok(());
    }
    // Before anything is measured: a file that is not there is told at once.
    let before = args.against.as_deref().map(Results::read).transpose()?;
    let results = match &args.from {
        Some(file) => {
            let mut results = Results::read(file)?;
            results.annotate();
            results
        }
        None => measure(args)?,
    };
    print!("{}", report::table(&results));
    write(args, &results)?;
    let failures = results
        .failures()
        .filter(|(_, _, failure)| !failure.expected)
        .count();
    let comparison = before
        .map(|before| Comparison::new(&before, &results, args.loss / 100.0))
        .transpose()?;
    if let Some(comparison) = &comparison {
        print!("{}", comparison.table());
    }
    ensure!(failures == 0, "{failures} measurements failed (see above)");
    if let Some(comparison) = comparison {
        let (losses, all) = (comparison.losses(), comparison.compared());
        ensure!(
            losses == 0,
            "{losses} of {all} numbers are worse than before by more than {} % (see above)",
            args.loss
        );
    }
    Ok(())
}

fn list() {
    let machine = Machine::this();
    let context = context(&machine, Size::Full, 1 << 30, 1);
    for workload in catalog::chosen(&[], &context).unwrap_or_default() {
        println!("{:<16} {}", workload.name, workload.about);
    }
    println!();
    for peer in peers::KNOWN {
        println!("{:<16} {}", peer.name, peer.title);
    }
}

fn context(machine: &Machine, size: Size, budget: u64, iterations_per_second: u64) -> Context<'_> {
    Context {
        size,
        machine,
        budget,
        iterations_per_second,
    }
}

fn measure(args: &Args) -> Result<Results> {
    let start = Instant::now();
    let machine = Machine::this();
    let size = if args.quick { Size::Quick } else { Size::Full };
    let context = context(&machine, size, args.memory << 30, pace());
    // Before anything is built: a misspelt name is told at once.
    let mut workloads = catalog::chosen(&args.workloads, &context)?;
    check_set(args, &workloads)?;
    let mut known = peers::chosen(&args.peers)?;
    for line in programs::leave_out(&mut workloads, programs::is_installed) {
        eprintln!("bench: {line}");
    }
    ensure!(!workloads.is_empty(), "nothing is left to measure");
    if args.peers.is_empty() {
        // Those who have nothing to do need not be built.
        let cases = || workloads.iter().flat_map(|workload| &workload.cases);
        known.retain(|known| cases().any(|case| case.is_for(known.name, known.kind)));
    }

    let mut cases = workloads.iter().flat_map(|workload| &workload.cases);
    let serves = cases.any(|case| case.driver.serves());
    let (peers, mut infos, load) = build(&known, serves)?;
    ensure!(!peers.is_empty(), "no peer can take part (see above)");
    let mut runner = Runner {
        peers,
        rounds: args.rounds.or(args.quick.then_some(1)),
        warm: size == Size::Full,
        timeout: args.timeout,
        set: args.set.clone(),
        load,
        descriptors: machine::raise_open_files(),
        progress: ProgressBar::hidden(),
        versions: BTreeMap::new(),
    };
    runner.ask_versions();
    for info in &mut infos {
        info.version = runner.versions.get(info.name.as_str()).cloned();
    }
    runner.progress = progress(workloads.iter().map(|w| runner.steps(w)).sum());
    let measured = workloads
        .iter()
        .map(|workload| runner.run(workload))
        .collect();
    runner.progress.finish_and_clear();
    eprintln!("measured in {:.0} s", start.elapsed().as_secs_f64());
    let mut results = Results {
        date: jiff::Timestamp::now()
            .strftime("%Y-%m-%d %H:%M")
            .to_string(),
        arguments: std::env::args().skip(1).collect(),
        machine,
        quick: args.quick,
        peers: infos,
        workloads: measured,
    };
    results.annotate();
    Ok(results)
}

/// Refuses values for parameters that no chosen workload has.
fn check_set(args: &Args, workloads: &[catalog::Workload]) -> Result<()> {
    for (key, _) in &args.set {
        let cases = || workloads.iter().flat_map(|w| &w.cases);
        ensure!(
            cases().any(|case| case.params.get(key).is_some()),
            "--set {key}: no workload that is to run has this parameter; there are {}",
            cases()
                .map(|case| case.params.arguments().collect::<Vec<_>>().join(" "))
                .collect::<Vec<_>>()
                .join("; ")
        );
    }
    Ok(())
}

type Built = (Vec<Peer>, Vec<PeerInfo>, Result<std::path::PathBuf, String>);

/// Builds the peers, and tells which cannot take part; and the client, if peers are to serve.
fn build(known: &[&'static Known], serves: bool) -> Result<Built> {
    let mut builder = Builder::new()?;
    if let Some(refused) = builder.refused() {
        eprintln!("bench: {refused}; another one is used");
    }
    let spinner = ProgressBar::new_spinner();
    spinner.enable_steady_tick(Duration::from_millis(100));
    let (mut peers, mut infos) = (Vec::new(), Vec::new());
    for known in known {
        spinner.set_message(format!("building {}", known.name));
        let built = builder.build(known);
        infos.push(PeerInfo {
            name: known.name.into(),
            title: known.title.into(),
            version: None,
            flags: built
                .as_ref()
                .map_or_else(|_| String::new(), |peer| peer.flags.clone()),
            skipped: built.as_ref().err().cloned(),
        });
        match built {
            Ok(peer) => peers.push(peer),
            Err(why) => eprintln!("bench: {} is skipped: {why}", known.name),
        }
    }
    spinner.set_message("building the client");
    let load = match serves {
        true => builder.load(),
        false => Err("no workload needs it".to_owned()),
    };
    spinner.finish_and_clear();
    Ok((peers, infos, load))
}

/// How many iterations of the computation this machine does in a second, on one core.
fn pace() -> u64 {
    const SAMPLE: u64 = 20_000_000;
    let time = || {
        let start = Instant::now();
        std::hint::black_box(peer_protocol::compute(SAMPLE, 1));
        start.elapsed()
    };
    // The least disturbed. What was not optimised would say nothing of the peers' pace.
    let best = (0..3)
        .map(|_| time())
        .min()
        .unwrap_or(Duration::from_millis(40));
    (SAMPLE as f64 / best.as_secs_f64()) as u64
}

fn progress(steps: u64) -> ProgressBar {
    // Hides itself where there is no terminal.
    let style =
        ProgressStyle::with_template("{bar:30} {pos}/{len}  {elapsed} (about {eta} left)  {msg}");
    ProgressBar::new(steps).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}

/// Writes the files that were asked for.
fn write(args: &Args, results: &Results) -> Result<()> {
    if let Some(file) = &args.json {
        let json = serde_json::to_string_pretty(results)? + "\n";
        std::fs::write(file, json).with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(file) = &args.markdown {
        let written = std::fs::write(file, report::markdown(results));
        written.with_context(|| format!("cannot write {}", file.display()))?;
    }
    if let Some(folder) = &args.report {
        let file = folder.join("index.html");
        let written = std::fs::create_dir_all(folder)
            .and_then(|()| std::fs::write(&file, report::html(results)));
        written.with_context(|| format!("cannot write {}", file.display()))?;
        eprintln!("the report is {}", file.display());
    }
    Ok(())
}
