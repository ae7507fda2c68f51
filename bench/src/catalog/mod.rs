//! What is measured: the workloads, their cases with sizes and metrics, and their drivers.
//!
//! `PROTOCOL.md` defines the peer's part of each; the sizes are here.

mod actors;
mod computing;
mod http_server;
mod memory;
mod network;
mod run;
mod switching;
mod waiting;

use crate::drivers::Driver;
use crate::machine::Machine;
use crate::peers::Kind;
use anyhow::{Result, bail};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A subject of measurement, in one or more cases.
pub struct Workload {
    /// Its name on the command line and in the reports.
    pub name: &'static str,
    /// One line that describes it.
    pub about: &'static str,
    /// Similar measurements of others, and where they are published.
    pub sources: &'static [&'static str],
    /// Rounds in which each peer is measured, unless the command line says otherwise.
    pub rounds: u32,
    pub cases: Vec<Case>,
}

/// A workload at one size.
pub struct Case {
    /// Tells it apart from the others of its workload; empty if it is the only one.
    pub name: String,
    /// The workload's name for the peers.
    pub call: &'static str,
    /// Its place on the axis, if its workload's cases are points of a curve.
    pub x: Option<f64>,
    pub params: Params,
    /// Other values for peers whose threads are the operating system's: less work where they would
    /// take too long. All numbers are per piece of work.
    pub for_os_threads: Params,
    pub metrics: Vec<Metric>,
    pub driver: Box<dyn Driver>,
    /// Whether every round has its own process, without warm-up.
    pub fresh: bool,
    pub cores: Cores,
    /// Threads that exist at once.
    pub threads: u64,
    /// The maximum of memory that any of the peers needs, in bytes.
    pub memory: u64,
    /// The delay of a backend that runs beside the peer, in milliseconds; its port is the parameter
    /// `backend`.
    pub backend: Option<u64>,
    /// The only peers that can do it, or that are asked to.
    pub only: Option<&'static [&'static str]>,
    /// Which of a peer's programs does it.
    pub program: Program,
    /// What must be installed for it, beside what its driver needs.
    pub needs: &'static [&'static str],
    /// The parameter that is a number of threads, which is cut to what fits where these are the
    /// operating system's.
    pub fits: Option<&'static str>,
}

impl Case {
    /// Whether a peer does it.
    pub fn is_for(&self, peer: &str, kind: Kind) -> bool {
        match self.only {
            Some(only) => only.contains(&peer),
            None => !kind.partial,
        }
    }
}

/// A program of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    /// The only one that most have.
    Own,
    C,
    Python,
    /// In Java, for any JDK from 17 on.
    Java,
    /// That of the JDK's peers, with platform threads.
    JavaServer,
}

impl Program {
    /// Returns what must be installed for it.
    fn needs(self) -> &'static [&'static str] {
        match self {
            Program::Own => &[],
            Program::C => &["cc"],
            Program::Python => &["python3"],
            Program::Java => &["java"],
            Program::JavaServer => &["JDK 25"],
        }
    }

    /// Whether it has a compiler at run time, which must warm up.
    pub fn has_jit(self) -> bool {
        matches!(self, Program::Java | Program::JavaServer)
    }
}

/// `key=value` pairs for a peer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(pub Vec<(&'static str, u64)>);

impl Params {
    pub fn get(&self, key: &str) -> Option<u64> {
        let found = self.0.iter().find(|(name, _)| *name == key);
        found.map(|(_, value)| *value)
    }

    /// Returns the parameters with the values of `other` where it has any.
    pub fn with(&self, other: &Params) -> Params {
        let value = |&(key, value)| (key, other.get(key).unwrap_or(value));
        Params(self.0.iter().map(value).collect())
    }

    /// Lowers the value of a key to this one, if it is higher.
    pub fn lower(&mut self, key: &str, most: u64) {
        for (name, value) in &mut self.0 {
            if *name == key {
                *value = most.min(*value);
            }
        }
    }

    /// Sets those of the pairs whose keys are here. Returns whether there was any.
    pub fn set(&mut self, pairs: &[(String, u64)]) -> bool {
        let mut any = false;
        for (key, value) in &mut self.0 {
            if let Some((_, new)) = pairs.iter().find(|(name, _)| name == key) {
                *value = *new;
                any = true;
            }
        }
        any
    }

    pub fn arguments(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(key, value)| format!("{key}={value}"))
    }
}

/// The machine's cores that a peer may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cores {
    All,
    One,
    /// One half for the peer, which is a server; the other for the client.
    Half,
}

/// A number that a case gives.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Metric {
    pub name: String,
    pub unit: String,
    pub better: Better,
    /// The project's goal for its own threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// Whether it is a part of another metric, so that it is neither won nor lost.
    #[serde(default)]
    pub part: bool,
    /// Whether the amount of work is part of the measurement, so that it differs between peers.
    #[serde(skip)]
    pub own_work: bool,
}

/// Which numbers are good.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    Lower,
    Higher,
}

pub fn lower(name: &str, unit: &str) -> Metric {
    Metric {
        name: name.into(),
        unit: unit.into(),
        better: Better::Lower,
        goal: None,
        part: false,
        own_work: false,
    }
}

/// Returns what is measured of a server that is asked again and again: this, and what it costs.
pub fn answered(rate: Metric) -> Vec<Metric> {
    vec![
        rate,
        lower("p50", "ms"),
        lower("p99", "ms"),
        lower("processor", "µs/request"),
        lower("of the client", "µs/request").part(),
    ]
}

pub fn higher(name: &str, unit: &str) -> Metric {
    Metric {
        better: Better::Higher,
        ..lower(name, unit)
    }
}

impl Metric {
    pub fn goal(mut self, goal: f64) -> Metric {
        self.goal = Some(goal);
        self
    }

    pub fn part(mut self) -> Metric {
        self.part = true;
        self
    }

    pub fn own_work(mut self) -> Metric {
        self.own_work = true;
        self
    }
}

/// The amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Size {
    /// Enough for meaningful numbers.
    Full,
    /// Just enough to see that everything works.
    Quick,
}

impl Size {
    /// Returns one of the two.
    pub fn pick<T>(self, full: T, quick: T) -> T {
        match self {
            Size::Full => full,
            Size::Quick => quick,
        }
    }
}

/// The values on which the sizes depend.
pub struct Context<'a> {
    pub size: Size,
    pub machine: &'a Machine,
    /// The budget for the largest number of parked threads, in bytes.
    pub budget: u64,
    /// The number of iterations of `compute` that take a second here.
    pub iterations_per_second: u64,
}

impl Context<'_> {
    /// Iterations that take this many milliseconds.
    pub fn iterations(&self, ms: u64) -> u64 {
        self.iterations_per_second * ms / 1000
    }
}

type Make = fn(&Context) -> Workload;

/// All workloads, in the order of the reports.
const ALL: &[Make] = &[
    switching::spawn,
    switching::r#yield,
    switching::pingpong,
    memory::parked,
    waiting::sleepers,
    memory::deep,
    computing::cpu_bound,
    computing::hogs,
    network::http,
    http_server::http_server,
    network::users,
    network::gateway,
    waiting::database,
    switching::skynet,
    switching::chain,
    computing::wait_and_hurry,
    switching::mutex,
    waiting::timers,
    waiting::random_numbers,
    network::echo,
    computing::malloc,
    switching::scope,
    actors::actors,
    run::spawn,
    run::parked,
    run::echo,
    run::python,
    run::java,
    run::java_server,
    run::few,
];

/// Returns the workloads of these names, or all.
///
/// # Errors
///
/// If no workload has such a name.
pub fn chosen(names: &[String], context: &Context) -> Result<Vec<Workload>> {
    let all: Vec<Workload> = ALL.iter().map(|make| make(context)).collect();
    if let Some(unknown) = names
        .iter()
        .find(|name| all.iter().all(|w| w.name != **name))
    {
        let known: Vec<&str> = all.iter().map(|w| w.name).collect();
        bail!(
            "there is no workload {unknown:?}; there are {}",
            known.join(", ")
        );
    }
    let is_chosen = |w: &Workload| names.is_empty() || names.iter().any(|name| name == w.name);
    Ok(all.into_iter().filter(is_chosen).collect())
}

/// Returns a case with nothing special about it: sizes and metrics, and defaults for the rest.
fn case(call: &'static str, params: &[(&'static str, u64)], metrics: Vec<Metric>) -> Case {
    Case {
        name: String::new(),
        call,
        x: None,
        params: Params(params.to_vec()),
        for_os_threads: Params::default(),
        metrics,
        driver: Box::new(crate::drivers::Itself),
        fresh: false,
        cores: Cores::All,
        threads: 0,
        memory: 0,
        backend: None,
        only: None,
        program: Program::Own,
        needs: &[],
        fits: None,
    }
}

/// Returns the maximum number of bytes that `threads` threads take: the maximum of all peers is a
/// stack of two pages with its page tables and the kernel's share.
const fn memory_of(threads: u64) -> u64 {
    threads * 10 * 1024
}

#[cfg(test)]
mod tests;
