//! Runs the cases: the peers take turns round by round, so that a change in the machine's pace
//! affects all of them alike.

use crate::catalog::{Case, Cores, Metric, Params, Program, Workload};
use crate::drivers::{self, Backend, Round, Sample};
use crate::machine::{Cpus, room_for_os_threads};
use crate::memory;
use crate::peers::Peer;
use crate::process::Process;
use crate::protocol::Refusal;
use crate::results::{CaseResults, Failure, MetricResults, Row, WorkloadResults, does_all};
use anyhow::{Result, bail, ensure};
use indicatif::ProgressBar;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The options with which everything is run.
pub struct Runner {
    pub peers: Vec<Peer>,
    /// The number of rounds of every workload, if not its own.
    pub rounds: Option<u32>,
    /// Whether peers warm up.
    pub warm: bool,
    pub timeout: Duration,
    /// Values for parameters, from the command line.
    pub set: BTreeMap<String, u64>,
    /// The program that makes the load, or the reason for its absence.
    pub load: Result<PathBuf, String>,
    pub descriptors: u64,
    /// For files of servers and clients.
    pub folder: TempDir,
    pub progress: ProgressBar,
    /// The versions that the peers report, by name.
    pub versions: BTreeMap<&'static str, String>,
}

/// A peer in a case.
struct Contender<'a> {
    peer: &'a Peer,
    params: Params,
    process: Option<Process>,
    rounds: Vec<Vec<Sample>>,
    failure: Option<Failure>,
}

/// Where a case runs.
#[derive(Clone, Copy)]
struct Place<'a> {
    case: &'a Case,
    client: &'a Params,
    server_cpus: Cpus,
    client_cpus: Cpus,
    load: &'a Path,
    folder: &'a Path,
}

impl Runner {
    pub fn rounds(&self, workload: &Workload) -> u32 {
        self.rounds.unwrap_or(workload.rounds)
    }

    /// Returns the number of steps of the progress bar.
    pub fn steps(&self, workload: &Workload) -> u64 {
        let cases = workload.cases.iter();
        cases
            .map(|case| self.contenders(case).len() as u64 * u64::from(self.rounds(workload)))
            .sum()
    }

    pub fn run(&self, workload: &Workload) -> WorkloadResults {
        let cases = workload.cases.iter().map(|case| {
            self.progress
                .set_message(format!("{} {}", workload.name, case.name));
            self.case(case, self.rounds(workload))
        });
        WorkloadResults {
            name: workload.name.clone(),
            about: workload.about.clone(),
            cases: cases.collect(),
            sources: workload.sources.clone(),
            run: None,
        }
    }

    fn case(&self, case: &Case, rounds: u32) -> CaseResults {
        let mut contenders = self.contenders(case);
        if let Err(error) = self.try_case(case, rounds, &mut contenders) {
            for contender in &mut contenders {
                contender.fail(&error, true);
            }
        }
        conclude(case, contenders)
    }

    /// Returns the peers that do this case.
    fn contenders(&self, case: &Case) -> Vec<Contender<'_>> {
        let takes_part = |peer: &&Peer| case.is_for(peer.name, peer.kind.partial);
        let peers = self.peers.iter().filter(takes_part);
        peers
            .map(|peer| Contender::new(peer, case, &self.set))
            .collect()
    }

    /// # Errors
    ///
    /// Runs a case. The errors prevent it for all peers.
    fn try_case(&self, case: &Case, rounds: u32, contenders: &mut [Contender]) -> Result<()> {
        let needed = drivers::descriptors(case);
        ensure!(
            needed <= self.descriptors,
            "it needs {needed} open files, and the limit is {} (ulimit -n, and its hard limit ulimit -Hn)",
            self.descriptors
        );
        memory::ensure_available(case.memory)?;
        if self.warm {
            memory::warm(case.memory);
        }
        let (server_cpus, client_cpus) = cpus(case.cores);
        let mut client = case.client.clone();
        client.set(&self.set);
        let load = match &self.load {
            Ok(load) => load.as_path(),
            Err(why) if case.driver.serves() => bail!("no client: {why}"),
            Err(_) => Path::new(""),
        };
        let start = |delay_ms| client_cpus.during(|| Backend::start(load, delay_ms));
        let backend = client.get("backend_ms").map(start).transpose()?;
        for contender in contenders.iter_mut() {
            contender.refuse_what_does_not_fit(case);
            if let Some(backend) = &backend {
                let port = u64::from(backend.port);
                contender.params.set([(&"backend".to_owned(), &port)]);
            }
        }
        let place = Place {
            case,
            client: &client,
            server_cpus,
            client_cpus,
            load,
            folder: self.folder.path(),
        };
        self.take_turns(place, rounds, contenders);
        Ok(())
    }

    fn take_turns(&self, place: Place, rounds: u32, contenders: &mut [Contender]) {
        if !place.case.fresh {
            for contender in contenders.iter_mut() {
                contender.attempt(|c| self.start(c, place));
            }
        }
        for round in 0..rounds as usize {
            for turn in 0..contenders.len() {
                // A different contender begins each time, so that none always runs after the same
                // one.
                let contender = &mut contenders[(round + turn) % contenders.len()];
                if place.case.fresh {
                    contender.attempt(|c| self.start(c, place));
                }
                contender.attempt(|c| c.round(place));
                if place.case.fresh {
                    contender.attempt(Contender::end);
                }
                self.progress.inc(1);
            }
        }
        for contender in contenders.iter_mut() {
            contender.attempt(Contender::end);
        }
    }

    /// Starts a contender and warms it up.
    fn start(&self, contender: &mut Contender, place: Place) -> Result<()> {
        let case = place.case;
        let mut command = contender.peer.command(case.program);
        command.arg(&case.call);
        command.args(contender.params.arguments());
        command.envs(drivers::environment(&contender.params, place.folder)?);
        let mut process = place
            .server_cpus
            .during(|| Process::start(&mut command, self.timeout))?;
        let jit = contender.peer.kind.jit || case.program.has_jit();
        // A server warms up even for a fresh round, because its start is not measured.
        if self.warm && (!case.fresh || (jit && case.driver.serves())) {
            warm_up(&mut process, &contender.in_round(place), jit)?;
        }
        contender.process = Some(process);
        Ok(())
    }

    /// Asks the peers for their versions, which also shows that they can be started.
    ///
    /// # Errors
    ///
    /// None: a peer that cannot be started has no version, and will fail in its first case.
    pub fn ask_versions(&mut self) {
        for peer in &self.peers {
            let mut command = peer.command(Program::Own);
            command.args(["serve", "delay_ms=0"]);
            if let Ok(process) = Process::start(&mut command, self.timeout) {
                self.versions.insert(peer.name, process.version.clone());
            }
        }
    }
}

/// Warms up a peer. A compiler at run time needs more than one round, if rounds are short.
fn warm_up(process: &mut Process, round: &Round, jit: bool) -> Result<()> {
    const ENOUGH: Duration = Duration::from_millis(1500);
    const MOST: u32 = 15;
    let start = Instant::now();
    for _ in 0..if jit { MOST } else { 1 } {
        round.warm_up(process)?;
        if start.elapsed() > ENOUGH {
            break;
        }
    }
    Ok(())
}

impl<'p> Contender<'p> {
    fn new(peer: &'p Peer, case: &Case, set: &BTreeMap<String, u64>) -> Contender<'p> {
        let mut params = case.params.clone();
        if peer.kind.os_threads {
            params.set(&case.for_os_threads.0);
        }
        params.set(set);
        if let Some(key) = &case.fits
            && peer.kind.os_threads
        {
            params.lower(key, room_for_os_threads().0);
        }
        Contender {
            peer,
            params,
            process: None,
            rounds: Vec::new(),
            failure: None,
        }
    }

    fn in_round<'a>(&'a self, place: Place<'a>) -> Round<'a> {
        Round {
            case: place.case,
            peer: self.peer,
            params: &self.params,
            client: place.client,
            cpus: place.client_cpus,
            load: place.load,
            folder: place.folder,
        }
    }

    fn round(&mut self, place: Place) -> Result<()> {
        let Some(mut process) = self.process.take() else {
            bail!("it was not started");
        };
        let samples = self.in_round(place).run(&mut process)?;
        self.process = Some(process);
        self.rounds.push(samples);
        Ok(())
    }

    fn end(&mut self) -> Result<()> {
        self.process.take().map_or(Ok(()), Process::end)
    }

    /// Runs `f`, unless the contender has failed before.
    fn attempt(&mut self, f: impl FnOnce(&mut Self) -> Result<()>) {
        if self.failure.is_none()
            && let Err(error) = f(self)
        {
            self.process = None;
            // If another peer cannot do something, that is a result. Pirn must do everything.
            let refused = error.downcast_ref::<Refusal>().is_some();
            self.fail(&error, refused && !does_all(self.peer.name));
        }
    }

    fn fail(&mut self, error: &anyhow::Error, expected: bool) {
        self.failure.get_or_insert(Failure {
            peer: self.peer.name.into(),
            why: format!("{error:#}"),
            expected,
        });
    }

    /// Refuses numbers of OS threads that would leave the machine without room for anything else.
    fn refuse_what_does_not_fit(&mut self, case: &Case) {
        let (room, setting) = room_for_os_threads();
        if self.peer.kind.os_threads && case.threads > room {
            let threads = case.threads;
            let why = format!(
                "{threads} OS threads are more than this machine has room for ({room}, for {setting})"
            );
            self.fail(&anyhow::Error::msg(why), true);
        }
    }
}

/// Returns the cores of a peer, and of its client.
fn cpus(cores: Cores) -> (Cpus, Cpus) {
    let all = Cpus::all();
    match cores {
        Cores::All => (all, all),
        Cores::One => (all.split(1).0, all),
        Cores::Half => all.split(all.count() / 2),
    }
}

/// Returns the results of the contenders.
fn conclude(case: &Case, contenders: Vec<Contender>) -> CaseResults {
    let mut failures: Vec<Failure> = different_work(case, &contenders);
    let metrics = case
        .metrics
        .iter()
        .map(|metric| of_metric(metric, &contenders))
        .collect();
    failures.extend(
        contenders
            .into_iter()
            .filter_map(|contender| contender.failure),
    );
    let parameters: Vec<String> = case.params.arguments().collect();
    CaseResults {
        name: case.name.clone(),
        x: case.x,
        parameters: parameters.join(" "),
        metrics,
        failures,
    }
}

fn of_metric(metric: &Metric, contenders: &[Contender]) -> MetricResults {
    let (mut rows, mut skipped) = (Vec::new(), Vec::new());
    for contender in contenders {
        let is_this = |sample: &&Sample| sample.metric == metric.name;
        let samples: Vec<&Sample> = contender.rounds.iter().flatten().filter(is_this).collect();
        let values: Vec<f64> = samples
            .iter()
            .filter_map(|s| s.value.as_ref().ok().copied())
            .collect();
        if let Some(why) = samples
            .iter()
            .find_map(|sample| sample.value.as_ref().err())
        {
            skipped.push(Failure {
                peer: contender.peer.name.into(),
                why: why.clone(),
                expected: true,
            });
        } else if !values.is_empty() {
            let remark = samples.iter().find_map(|sample| sample.remark.clone());
            rows.push(Row::new(contender.peer.name, values, remark));
        }
    }
    MetricResults::new(metric.clone(), rows, skipped)
}

/// Returns a failure if peers with the same parameters have not done the same work.
fn different_work(case: &Case, contenders: &[Contender]) -> Vec<Failure> {
    let mut failures = Vec::new();
    for metric in case.metrics.iter().filter(|metric| !metric.own_work) {
        let mut agreed: Option<(&Contender, u64)> = None;
        for contender in contenders
            .iter()
            .filter(|c| c.params == contenders[0].params)
        {
            let sample = contender
                .rounds
                .iter()
                .flatten()
                .find(|s| s.metric == metric.name);
            let Some(done) = sample.and_then(|sample| sample.done) else {
                continue;
            };
            let (other, expected) = *agreed.get_or_insert((contender, done));
            if done != expected {
                failures.push(Failure {
                    peer: contender.peer.name.into(),
                    why: format!(
                        "{}: its work came to {done}, the work of {} to {expected}",
                        metric.name, other.peer.name
                    ),
                    expected: false,
                });
            }
        }
    }
    failures
}
