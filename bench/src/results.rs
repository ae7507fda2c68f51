//! The results: the content of the JSON file, from which the table and the report are made.

use crate::catalog::{Better, Metric};
use crate::machine::Machine;
use crate::notes;
use crate::stats::{self, Spread};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// All measurements of a run.
#[derive(Debug, Serialize, Deserialize)]
pub struct Results {
    /// The time of the run, in UTC: `2026-11-20 19:05`.
    pub date: String,
    /// The options of the command line, to repeat the run.
    pub arguments: Vec<String>,
    pub machine: Machine,
    /// Whether the sizes were the small ones, so that the numbers mean nothing.
    pub quick: bool,
    pub peers: Vec<PeerInfo>,
    pub workloads: Vec<WorkloadResults>,
}

/// A peer, and whether it took part.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct PeerInfo {
    /// On the command line, and in [`Row::peer`].
    pub name: String,
    /// For people: `JDK virtual threads`.
    pub title: String,
    /// The version of what it measures, as it reports it; `None` if it never did.
    pub version: Option<String>,
    /// How it was built and started.
    pub flags: String,
    /// Why it did not take part.
    pub skipped: Option<String>,
}

/// The results of a workload.
#[derive(Debug, Serialize, Deserialize)]
pub struct WorkloadResults {
    pub name: String,
    pub about: String,
    /// The measurements of others.
    pub sources: Vec<String>,
    pub cases: Vec<CaseResults>,
}

/// The results of a workload at one size.
#[derive(Debug, Serialize, Deserialize)]
pub struct CaseResults {
    /// Empty if it is the only one.
    pub name: String,
    /// Where it lies on the axis, if the cases of this workload are points of a curve.
    pub x: Option<f64>,
    /// The parameters of the peers: `burst=100000 inside=100000`.
    pub parameters: String,
    pub metrics: Vec<MetricResults>,
    /// The peers without numbers.
    pub failures: Vec<Failure>,
}

/// The values of a metric.
#[derive(Debug, Serialize, Deserialize)]
pub struct MetricResults {
    #[serde(flatten)]
    pub metric: Metric,
    /// In the order of the peers; only those that have values.
    pub rows: Vec<Row>,
    /// The peers that report that they cannot measure this, and why.
    pub skipped: Vec<Failure>,
    /// Pirn compared with the best of the others. `None` if one side has no values.
    pub verdict: Option<Verdict>,
    /// If Pirn loses: why, and what would help, if that is known.
    pub note: Option<String>,
}

/// The values of one peer, one per round.
#[derive(Debug, Serialize, Deserialize)]
pub struct Row {
    pub peer: String,
    pub median: f64,
    pub min: f64,
    pub max: f64,
    pub values: Vec<f64>,
    /// A remark on these values.
    pub remark: Option<String>,
}

/// The reason for which there is no number.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Failure {
    pub peer: String,
    pub why: String,
    /// Whether it is due to the machine's lack of room, and so no error of the peer or the harness.
    pub expected: bool,
}

/// Pirn compared with the best of the others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// The best of the others by its median.
    pub best: String,
    /// Pirn's value / the best's, of each round of both, so that it is below 1 where Pirn is better
    /// if lower is better, above it if higher is. Infinite where the best has 0 and Pirn has not.
    pub median: f64,
    pub min: f64,
    pub max: f64,
    /// Whether Pirn is worse by more than 2 %, by the median.
    pub loses: bool,
}

/// The peer that is compared with all others.
pub const PIRN: &str = "pirn";

/// The same where the programs are not written for Pirn. No case has both.
pub const PIRN_RUN: &str = "pirn-run";

/// The same where servers of libraries are measured.
pub const PIRN_HTTP: &str = "pirn-http";

/// The server of a textbook on Pirn's threads, which shows what a library costs.
const TEXTBOOK: &str = "pirn-textbook";

/// Whether a peer is the one that is compared with all others.
pub fn is_ours(peer: &str) -> bool {
    [PIRN, PIRN_RUN, PIRN_HTTP].contains(&peer)
}

/// Whether a peer is Pirn itself: the one that is compared, or another form.
pub fn is_pirn(peer: &str) -> bool {
    does_all(peer) || peer == TEXTBOOK
}

/// Whether it is a failure if a peer cannot do what it is asked for.
pub fn does_all(peer: &str) -> bool {
    is_ours(peer) || peer == "pirn-process"
}

impl Row {
    pub fn new(peer: &str, values: Vec<f64>, remark: Option<String>) -> Row {
        let Spread { median, min, max } = stats::spread(&values);
        Row {
            peer: peer.into(),
            median,
            min,
            max,
            values,
            remark,
        }
    }
}

impl MetricResults {
    pub fn new(metric: Metric, rows: Vec<Row>, skipped: Vec<Failure>) -> MetricResults {
        let verdict = if metric.part {
            None
        } else {
            verdict(metric.better, &rows)
        };
        MetricResults {
            metric,
            rows,
            skipped,
            verdict,
            note: None,
        }
    }

    /// Returns the row of the peer that is compared with all others.
    pub fn ours(&self) -> Option<&Row> {
        self.rows.iter().find(|row| is_ours(&row.peer))
    }

    /// Returns the peer with the best median.
    pub fn best(&self) -> Option<&Row> {
        best(self.metric.better, self.rows.iter())
    }
}

fn best<'a>(better: Better, rows: impl Iterator<Item = &'a Row>) -> Option<&'a Row> {
    match better {
        Better::Lower => rows.min_by(|a, b| a.median.total_cmp(&b.median)),
        Better::Higher => rows.max_by(|a, b| a.median.total_cmp(&b.median)),
    }
}

fn verdict(better: Better, rows: &[Row]) -> Option<Verdict> {
    const MARGIN: f64 = 0.02;
    let pirn = rows.iter().find(|row| is_ours(&row.peer))?;
    let best = best(better, rows.iter().filter(|row| !is_pirn(&row.peer)))?;
    // The rounds were interleaved: a disturbance of one of a pair is likely to have affected the
    // other.
    let pairs = pirn.values.iter().zip(&best.values);
    let ratios: Vec<f64> = pairs.map(|(&ours, &theirs)| ratio(ours, theirs)).collect();
    let Spread { median, min, max } = stats::spread(&ratios);
    Some(Verdict {
        best: best.peer.clone(),
        median,
        min,
        max,
        loses: match better {
            Better::Lower => median > 1.0 + MARGIN,
            Better::Higher => median < 1.0 - MARGIN,
        },
    })
}

fn ratio(ours: f64, theirs: f64) -> f64 {
    // Both may have no errors at all.
    if ours == theirs { 1.0 } else { ours / theirs }
}

impl Results {
    /// Reads the results that an earlier run wrote with `--json`.
    ///
    /// # Errors
    ///
    /// If there is no such file, or its content is invalid.
    pub fn read(file: &Path) -> Result<Results> {
        let json =
            std::fs::read(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_slice(&json).with_context(|| format!("{} has no results", file.display()))
    }

    /// Returns the losses of Pirn: workload, case, metric.
    pub fn losses(&self) -> impl Iterator<Item = (&WorkloadResults, &CaseResults, &MetricResults)> {
        self.metrics()
            .filter(|(_, _, metric)| metric.verdict.as_ref().is_some_and(|v| v.loses))
    }

    /// Returns all metrics with their workloads and cases.
    pub fn metrics(
        &self,
    ) -> impl Iterator<Item = (&WorkloadResults, &CaseResults, &MetricResults)> {
        let metrics = |(workload, case)| each(workload, case, |case: &CaseResults| &case.metrics);
        self.cases().flat_map(metrics)
    }

    /// Returns all failures with their workloads and cases.
    pub fn failures(&self) -> impl Iterator<Item = (&WorkloadResults, &CaseResults, &Failure)> {
        let failures = |(workload, case)| each(workload, case, |case: &CaseResults| &case.failures);
        self.cases().flat_map(failures)
    }

    fn cases(&self) -> impl Iterator<Item = (&WorkloadResults, &CaseResults)> {
        self.workloads
            .iter()
            .flat_map(|workload| workload.cases.iter().map(move |case| (workload, case)))
    }

    /// Adds its explanation to each metric.
    pub fn annotate(&mut self) {
        for workload in &mut self.workloads {
            for case in &mut workload.cases {
                for metric in &mut case.metrics {
                    metric.note = notes::find(&workload.name, &case.name, &metric.metric.name);
                }
            }
        }
    }

    /// Returns a peer's name for people.
    pub fn title<'a>(&'a self, peer: &'a str) -> &'a str {
        let found = self.peers.iter().find(|info| info.name == peer);
        found.map_or(peer, |info| &info.title)
    }
}

/// Returns what `of` returns for each case, with its workload and case.
fn each<'a, T: 'a>(
    workload: &'a WorkloadResults,
    case: &'a CaseResults,
    of: fn(&CaseResults) -> &Vec<T>,
) -> impl Iterator<Item = (&'a WorkloadResults, &'a CaseResults, &'a T)> {
    of(case).iter().map(move |item| (workload, case, item))
}

/// Formats a number in about four digits, with separators from a thousand on.
pub fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v.fract() == 0.0 || v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        v if v >= 0.1 => 3,
        v if v >= 0.01 => 4,
        _ => 5,
    };
    let text = format!("{value:.decimals$}");
    let (whole, rest) = text.split_at(text.find('.').unwrap_or(text.len()));
    if !value.is_finite() {
        return text;
    }
    let mut separated = String::new();
    for (i, digit) in whole.chars().enumerate() {
        if i > 0 && (whole.len() - i).is_multiple_of(3) && !separated.ends_with('-') {
            separated.push(',');
        }
        separated.push(digit);
    }
    separated + rest
}

#[cfg(test)]
mod tests;
