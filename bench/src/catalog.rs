//! Reads `catalog.toml`, which says what is measured, and computes the sizes for this run.
//!
//! A [`Workload`] has [`Case`]s; a case says what the peers are told, who measures, and which
//! numbers ([`Metric`]) come of it.

use crate::text::number;
use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A subject of measurement, in one or more cases.
pub struct Workload {
    pub name: String,
    pub about: String,
    /// Similar measurements of others.
    pub sources: Vec<String>,
    /// Rounds in which each peer is measured, unless the command line says otherwise.
    pub rounds: u32,
    pub cases: Vec<Case>,
}

/// A workload at one size.
pub struct Case {
    /// Tells it apart from the others of its workload; empty if it is the only one.
    pub name: String,
    /// The workload's name for the peers.
    pub call: String,
    /// Its place on the axis, if its workload's cases are points of a curve.
    pub x: Option<f64>,
    /// What the peers are told.
    pub params: Params,
    /// What the harness's side needs to know.
    pub client: Params,
    /// Other values for peers whose threads are the operating system's: less work where they would
    /// take too long. All numbers are per piece of work.
    pub for_os_threads: Params,
    pub metrics: Vec<Metric>,
    pub driver: Driver,
    /// Whether every round has its own process, without warm-up.
    pub fresh: bool,
    pub cores: Cores,
    /// Threads that exist at once.
    pub threads: u64,
    /// The maximum of memory that any of the peers needs, in bytes.
    pub memory: u64,
    /// The only peers that can do it, or that are asked to.
    pub only: Option<Vec<String>>,
    /// Which of a peer's programs does it.
    pub program: Program,
    /// The programs that must be installed for it.
    pub needs: Vec<String>,
    /// The parameter that is a number of threads, which is cut to what fits where these are the
    /// operating system's.
    pub fits: Option<String>,
}

impl Case {
    /// Whether a peer does it; a partial one does only cases that name it.
    pub fn is_for(&self, peer: &str, partial: bool) -> bool {
        match &self.only {
            Some(only) => only.iter().any(|name| name == peer),
            None => !partial,
        }
    }
}

/// Who measures: `drivers/mod.rs` says how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Driver {
    #[default]
    Itself,
    WholeProcess,
    Usage,
    Parked,
    MostParked,
    Ask,
    Users,
    Open,
    Redis,
}

impl Driver {
    /// Whether the peer is a server, which is not asked for rounds.
    pub fn serves(self) -> bool {
        matches!(
            self,
            Driver::Ask | Driver::Users | Driver::Open | Driver::Redis
        )
    }
}

/// A program of a peer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// The only one that most have.
    #[default]
    Own,
    C,
    Python,
    /// In Java, for any JDK from 17 on.
    Java,
    /// The server of the JDK's peers, with platform threads.
    JavaServer,
}

impl Program {
    /// Whether it has a compiler at run time, which must warm up.
    pub fn has_jit(self) -> bool {
        matches!(self, Program::Java | Program::JavaServer)
    }
}

/// The machine's cores that a peer may use.
#[derive(Clone, Copy, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cores {
    #[default]
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
    #[serde(default)]
    pub better: Better,
    /// The project's goal for its own threads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// Whether it is a part of another metric, so that it is neither won nor lost.
    #[serde(default)]
    pub part: bool,
    /// Whether the amount of work is part of the measurement, so that it differs between peers.
    #[serde(default, skip_serializing)]
    pub own_work: bool,
}

#[cfg(test)]
impl Metric {
    /// A metric of which less is better, or more.
    pub fn of(name: &str, unit: &str, better: Better) -> Metric {
        let (name, unit) = (name.into(), unit.into());
        Metric {
            name,
            unit,
            better,
            goal: None,
            part: false,
            own_work: false,
        }
    }
}

/// Which numbers are good.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    #[default]
    Lower,
    Higher,
}

/// `key=value` pairs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Params(pub BTreeMap<String, u64>);

impl Params {
    pub fn get(&self, key: &str) -> Option<u64> {
        self.0.get(key).copied()
    }

    /// Lowers the value of a key to this one, if it is higher.
    pub fn lower(&mut self, key: &str, most: u64) {
        if let Some(value) = self.0.get_mut(key) {
            *value = most.min(*value);
        }
    }

    /// Sets the values of the keys that are here, and ignores the other pairs.
    pub fn set<'a>(&mut self, pairs: impl IntoIterator<Item = (&'a String, &'a u64)>) {
        for (key, new) in pairs {
            if let Some(value) = self.0.get_mut(key) {
                *value = *new;
            }
        }
    }

    pub fn arguments(&self) -> impl Iterator<Item = String> {
        self.0.iter().map(|(key, value)| format!("{key}={value}"))
    }
}

/// The values on which the sizes depend.
#[derive(Clone, Copy)]
pub struct Context {
    /// Small sizes, just enough to see that everything works.
    pub quick: bool,
    pub cores: u64,
    /// The budget for the largest number of parked threads, in bytes.
    pub budget: u64,
    /// The number of iterations of `compute` that take a second here.
    pub iterations_per_second: u64,
}

/// Returns the workloads of these names, or all.
///
/// # Errors
///
/// If no workload has such a name.
pub fn chosen(names: &[String], context: &Context) -> Result<Vec<Workload>> {
    let file: File = toml::from_str(include_str!("catalog.toml")).context("catalog.toml")?;
    let known: Vec<&str> = file.workload.iter().map(|w| &*w.name).collect();
    if let Some(unknown) = names.iter().find(|name| !known.contains(&name.as_str())) {
        bail!(
            "there is no workload {unknown:?}; there are {}",
            known.join(", ")
        );
    }
    let written = file
        .workload
        .iter()
        .filter(|w| names.is_empty() || names.contains(&w.name));
    written
        .map(|w| w.computed(&file.metrics, context))
        .collect()
}

/// `catalog.toml` as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    metrics: BTreeMap<String, Vec<Metric>>,
    workload: Vec<WrittenWorkload>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenWorkload {
    name: String,
    about: String,
    #[serde(default)]
    sources: Vec<String>,
    rounds: u32,
    peers: Option<Vec<String>>,
    case: Vec<WrittenCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WrittenCase {
    #[serde(default)]
    name: String,
    call: String,
    #[serde(default)]
    params: Sizes,
    #[serde(default)]
    client: Sizes,
    #[serde(default)]
    os_threads: Sizes,
    #[serde(default)]
    each: BTreeMap<String, [Vec<Amount>; 2]>,
    #[serde(default)]
    curve: bool,
    #[serde(default)]
    at_once: Option<Amount>,
    #[serde(default)]
    memory: Option<Amount>,
    metrics: Metrics,
    #[serde(default)]
    driver: Driver,
    #[serde(default)]
    fresh: bool,
    #[serde(default)]
    cores: Cores,
    #[serde(default)]
    program: Program,
    #[serde(default)]
    needs: Vec<String>,
    fits: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Metrics {
    Named(String),
    Own(Vec<Metric>),
}

type Sizes = BTreeMap<String, Size>;

#[derive(Deserialize)]
#[serde(untagged)]
enum Size {
    /// Of a full run, of `--quick`.
    Two([Amount; 2]),
    One(Amount),
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Number(u64),
    /// Numbers and names with operators between, computed from left to right.
    Text(String),
}

impl Amount {
    fn value(&self, context: &Context, params: &[&Params]) -> Result<u64> {
        let text = match self {
            Amount::Number(number) => return Ok(*number),
            Amount::Text(text) => text,
        };
        let one = |word: &str| match word {
            "cores" => Some(context.cores),
            "budget" => Some(context.budget),
            "work_ms" => Some(context.iterations_per_second / 1000),
            _ => word
                .parse()
                .ok()
                .or_else(|| params.iter().find_map(|p| p.get(word))),
        };
        let one = |word: &str| one(word).with_context(|| format!("what is {word} in {text:?}?"));
        let words: Vec<&str> = text.split_whitespace().collect();
        let mut value = one(words.first().copied().unwrap_or_default())?;
        for pair in words[1..].chunks(2) {
            value = match *pair {
                ["+", word] => value + one(word)?,
                ["*", word] => value * one(word)?,
                ["/", word] => value / one(word)?,
                _ => bail!("{text:?} is no sum or product"),
            };
        }
        Ok(value)
    }
}

impl WrittenWorkload {
    fn computed(&self, sets: &BTreeMap<String, Vec<Metric>>, cx: &Context) -> Result<Workload> {
        let mut cases = Vec::new();
        for case in &self.case {
            let computed = case.computed(self.peers.as_deref(), sets, cx);
            cases.extend(computed.with_context(|| format!("{} {}", self.name, case.name))?);
        }
        Ok(Workload {
            name: self.name.clone(),
            about: self.about.clone(),
            sources: self.sources.clone(),
            rounds: self.rounds,
            cases,
        })
    }
}

impl WrittenCase {
    /// The case with each value of `each`.
    fn computed(
        &self,
        peers: Option<&[String]>,
        sets: &BTreeMap<String, Vec<Metric>>,
        cx: &Context,
    ) -> Result<Vec<Case>> {
        ensure!(
            self.each.len() <= 1,
            "it is for each of one parameter at most"
        );
        let Some((key, values)) = self.each.iter().next() else {
            return Ok(vec![self.at(None, peers, sets, cx)?]);
        };
        let values = values[usize::from(cx.quick)].iter();
        values
            .map(|value| self.at(Some((key, value.value(cx, &[])?)), peers, sets, cx))
            .collect()
    }

    fn at(
        &self,
        each: Option<(&String, u64)>,
        peers: Option<&[String]>,
        sets: &BTreeMap<String, Vec<Metric>>,
        cx: &Context,
    ) -> Result<Case> {
        let mut params = computed(&self.params, cx)?;
        params
            .0
            .extend(each.map(|(key, value)| (key.clone(), value)));
        let client = computed(&self.client, cx)?;
        let all = [&params, &client];
        let value = |amount: &Option<Amount>| amount.as_ref().map(|a| a.value(cx, &all));
        let threads = value(&self.at_once).transpose()?.unwrap_or(0);
        // The maximum of all peers is a stack of two pages with its page tables and the kernel's
        // share.
        let memory = value(&self.memory).unwrap_or(Ok(threads * 10 * 1024))?;
        let mut needs = self.needs.clone();
        if self.driver == Driver::Ask && client.get("streams").is_none() {
            needs.push("wrk".into());
        }
        Ok(Case {
            name: name(&self.name, &all),
            call: self.call.clone(),
            x: each.filter(|_| self.curve).map(|(_, value)| value as f64),
            metrics: match &self.metrics {
                Metrics::Own(metrics) => metrics.clone(),
                Metrics::Named(name) => sets.get(name).context("no such metrics")?.clone(),
            },
            for_os_threads: computed(&self.os_threads, cx)?,
            only: peers.map(<[String]>::to_vec),
            fits: self.fits.clone(),
            driver: self.driver,
            fresh: self.fresh,
            cores: self.cores,
            program: self.program,
            params,
            client,
            threads,
            memory,
            needs,
        })
    }
}

fn computed(sizes: &Sizes, cx: &Context) -> Result<Params> {
    let value = |(key, size): (&String, &Size)| {
        let amount = match size {
            Size::Two(two) => &two[usize::from(cx.quick)],
            Size::One(one) => one,
        };
        Ok((key.clone(), amount.value(cx, &[])?))
    };
    sizes.iter().map(value).collect::<Result<_>>().map(Params)
}

/// A case's name, with the values of parameters: `{threads} threads` is `10,000 threads`.
fn name(template: &str, params: &[&Params]) -> String {
    let mut name = template.to_owned();
    for (key, &value) in params.iter().flat_map(|params| &params.0) {
        name = name.replace(&format!("{{{key}}}"), &number(value as f64));
    }
    match name
        .strip_prefix("1 ")
        .and_then(|things| things.strip_suffix('s'))
    {
        Some(thing) => format!("1 {thing}"),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(quick: bool) -> Vec<Workload> {
        let context = Context {
            quick,
            cores: 2,
            budget: 1 << 30,
            iterations_per_second: 1_000_000,
        };
        chosen(&[], &context).unwrap()
    }

    #[test]
    fn names_are_unique_and_complete() {
        for workload in [all(false), all(true)].into_iter().flatten() {
            let mut names: Vec<&str> = workload.cases.iter().map(|case| &*case.name).collect();
            assert!(
                names.iter().all(|name| !name.contains(['{', '}'])),
                "{names:?}"
            );
            names.sort_unstable();
            names.dedup();
            assert_eq!(names.len(), workload.cases.len(), "{names:?}");
        }
    }

    #[test]
    fn sizes_are_computed_for_this_run() {
        let workloads = all(false);
        let cases = |name: &str| &workloads.iter().find(|w| w.name == name).unwrap().cases;
        let budget = cases("parked")
            .iter()
            .find(|case| case.name == "in 1,024 MiB")
            .unwrap();
        assert_eq!(budget.memory, 2 << 30);
        let mutex: Vec<_> = cases("mutex").iter().map(|case| &*case.name).collect();
        assert_eq!(mutex[..2], ["1 thread", "2 threads"]);
        let task = &cases("cpu-bound")[0].params;
        assert_eq!(
            (task.get("tasks"), task.get("iterations")),
            (Some(3), Some(300_000))
        );
        assert_eq!(cases("echo")[1].threads, 200);
    }

    #[test]
    fn what_is_no_size_is_an_error() {
        let context = Context {
            quick: true,
            cores: 2,
            budget: 0,
            iterations_per_second: 0,
        };
        for bad in ["thread", "2 cores", "2 - cores", ""] {
            assert!(
                Amount::Text(bad.into()).value(&context, &[]).is_err(),
                "{bad}"
            );
        }
    }

    #[test]
    fn parameters_are_set_by_name_and_cut_to_what_fits() {
        let mut params = Params([("a".to_owned(), 1), ("b".to_owned(), 2)].into());
        params.set([(&"b".to_owned(), &7), (&"c".to_owned(), &8)]);
        params.lower("b", 5);
        params.lower("a", 5);
        assert_eq!(params.arguments().collect::<Vec<_>>(), ["a=1", "b=5"]);
    }
}
