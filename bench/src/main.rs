//! Measures Pirn beside what a user would pick instead: `cargo run --release -p bench -- --help`.
//! `README.md` explains what and why, `PROTOCOL.md` what the peers do.
//!
//! Five layers, each of which uses those above it, and nothing below:
//!
//! 1. `machine`, `memory`, `text`, `protocol`, `process`: the system, and a peer's process
//! 2. `catalog`: what is measured; `peers`: who is, found and built
//! 3. `drivers`: a round, measured from outside; `results`: the numbers and their verdicts
//! 4. `runner`: the rounds, peers by turns; `report`, `against`: the numbers as tables
//! 5. `args` and this file: what the command line asks for

mod against;
mod args;
mod catalog;
mod drivers;
mod machine;
mod memory;
mod peers;
mod process;
mod protocol;
mod report;
mod results;
mod runner;
mod text;

use against::Comparison;
use anyhow::{Context as _, Result, ensure};
use args::Args;
use catalog::{Context, Workload};
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
        return list();
    }
    // Before anything is measured: a file that is not there is told at once.
    let before = args.against.as_deref().map(Results::read).transpose()?;
    let results = match &args.from {
        Some(file) => {
            let mut results = Results::read(file)?;
            results.annotate()?;
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

fn list() -> Result<()> {
    let machine = Machine::this();
    for workload in catalog::chosen(&[], &context(&machine, false, 1, 1))? {
        println!("{:<16} {}", workload.name, workload.about);
    }
    println!();
    for peer in peers::KNOWN {
        println!("{:<16} {}", peer.name, peer.title);
    }
    Ok(())
}

fn context(machine: &Machine, quick: bool, gib: u64, iterations_per_second: u64) -> Context {
    Context {
        quick,
        cores: machine.cores as u64,
        budget: gib << 30,
        iterations_per_second,
    }
}

fn measure(args: &Args) -> Result<Results> {
    let start = Instant::now();
    let machine = Machine::this();
    let context = context(&machine, args.quick, args.memory, pace());
    // Before anything is built: a misspelt name is told at once.
    let mut workloads = catalog::chosen(&args.workloads, &context)?;
    check_set(args, &workloads)?;
    let mut known = peers::chosen(&args.peers)?;
    for line in leave_out(&mut workloads, peers::is_installed) {
        eprintln!("bench: {line}");
    }
    ensure!(!workloads.is_empty(), "nothing is left to measure");
    if args.peers.is_empty() {
        // Those who have nothing to do need not be built.
        let cases = || workloads.iter().flat_map(|workload| &workload.cases);
        known.retain(|known| cases().any(|case| case.is_for(known.name, known.kind.partial)));
    }

    let mut cases = workloads.iter().flat_map(|workload| &workload.cases);
    let serves = cases.any(|case| case.driver.serves());
    let (peers, mut infos, load) = build(&known, serves)?;
    ensure!(!peers.is_empty(), "no peer can take part (see above)");
    let mut runner = Runner {
        peers,
        rounds: args.rounds.or(args.quick.then_some(1)),
        warm: !args.quick,
        timeout: args.timeout,
        set: args.set.iter().cloned().collect(),
        load,
        descriptors: machine::raise_open_files(),
        folder: tempfile::tempdir().context("no folder for temporary files")?,
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
    results.annotate()?;
    Ok(results)
}

/// Refuses values for parameters that no chosen workload has.
fn check_set(args: &Args, workloads: &[Workload]) -> Result<()> {
    for (key, _) in &args.set {
        let cases = || workloads.iter().flat_map(|w| &w.cases);
        ensure!(
            cases().any(|case| case.params.get(key).or(case.client.get(key)).is_some()),
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
    Ok(())
}

/// Leaves out the cases that need a program which is not installed. Returns the lines to say, one
/// per program.
fn leave_out(workloads: &mut Vec<Workload>, is_installed: impl Fn(&str) -> bool) -> Vec<String> {
    let mut lacking: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for workload in &mut *workloads {
        workload.cases.retain(|case| {
            let missing = case.needs.iter().find(|program| !is_installed(program));
            if let Some(program) = missing {
                let left_out = format!("{} {}", workload.name, case.name)
                    .trim_end()
                    .to_owned();
                lacking.entry(program.clone()).or_default().push(left_out);
            }
            missing.is_none()
        });
    }
    workloads.retain(|workload| !workload.cases.is_empty());
    let remedy = |program: &str| match program {
        "JDK 25" => "set JAVA_HOME to one that is not older".to_owned(),
        "java" => "apt-get install default-jdk-headless".to_owned(),
        "cc" => "apt-get install gcc".to_owned(),
        "h2load" => "apt-get install nghttp2-client".to_owned(),
        "redis-benchmark" => "apt-get install redis-tools".to_owned(),
        program => format!("apt-get install {program}"),
    };
    let line = |(program, cases): (String, Vec<String>)| {
        let cases = cases.join(", ");
        format!(
            "{program} is not installed ({}); left out: {cases}",
            remedy(&program)
        )
    };
    lacking.into_iter().map(line).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_needs_a_missing_program_is_left_out_and_told_once() {
        let machine = Machine::this();
        let mut workloads = catalog::chosen(&[], &context(&machine, true, 1, 1)).unwrap();
        let lines = leave_out(&mut workloads, |program| !["wrk", "cc"].contains(&program));
        assert_eq!(lines.len(), 2, "{lines:?}");
        assert!(
            lines[0].starts_with("cc is not installed (apt-get install gcc)"),
            "{lines:?}"
        );
        assert!(lines[1].contains("http 20 connections"), "{lines:?}");
        let names: Vec<&str> = workloads.iter().map(|workload| &*workload.name).collect();
        assert!(
            !names.contains(&"http") && names.contains(&"http-server"),
            "{names:?}"
        );
    }
}
