//! The results: the content of the JSON file, from which the table and the report are made.

use crate::catalog::{Better, Metric};
use crate::machine::Machine;
use crate::text::{Spread, spread};
use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// The date and command of this workload's run, in a file that has several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
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
    /// Pirn compared with the best of the others. `None` if one side has no values. Computed anew
    /// when it is read: JSON has no infinite ratio.
    #[serde(skip_deserializing)]
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

/// Whether a peer is the one that is compared with all others: that, or `pirn-run` where the
/// programs are not written for Pirn, or `pirn-http` where servers of libraries are measured. No
/// case has two of them.
pub fn is_ours(peer: &str) -> bool {
    [PIRN, "pirn-run", "pirn-http"].contains(&peer)
}

/// Whether a peer is Pirn itself: the one that is compared, or another form. The server of a
/// textbook shows what a library costs.
fn is_pirn(peer: &str) -> bool {
    does_all(peer) || peer == "pirn-textbook"
}

/// Whether it is a failure if a peer cannot do what it is asked for.
pub fn does_all(peer: &str) -> bool {
    is_ours(peer) || peer == "pirn-process"
}

impl Row {
    pub fn new(peer: &str, values: Vec<f64>, remark: Option<String>) -> Row {
        let Spread { median, min, max } = spread(&values);
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
        let mut results = MetricResults {
            metric,
            rows,
            skipped,
            verdict: None,
            note: None,
        };
        results.judge();
        results
    }

    /// Computes the verdict; a part of another metric has none.
    fn judge(&mut self) {
        self.verdict = match self.metric.part {
            true => None,
            false => verdict(self.metric.better, &self.rows),
        };
    }

    /// Returns the row of the peer that is compared with all others.
    pub fn ours(&self) -> Option<&Row> {
        self.rows.iter().find(|row| is_ours(&row.peer))
    }

    /// Returns the row of a peer.
    pub fn row(&self, peer: &str) -> Option<&Row> {
        self.rows.iter().find(|row| row.peer == peer)
    }

    /// Returns a ratio of this metric, inverted where higher is better: above 1 Pirn is always
    /// worse.
    pub fn worse(&self, ratio: f64) -> f64 {
        match self.metric.better {
            Better::Lower => ratio,
            Better::Higher => 1.0 / ratio,
        }
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
    let Spread { median, min, max } = spread(&ratios);
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
        let results = serde_json::from_slice(&json);
        let mut results: Results =
            results.with_context(|| format!("{} has no results", file.display()))?;
        results.metrics_mut().for_each(|(_, metric)| metric.judge());
        Ok(results)
    }

    /// Returns all metrics, with the names of its workload and case.
    fn metrics_mut(&mut self) -> impl Iterator<Item = ([&str; 2], &mut MetricResults)> {
        self.workloads.iter_mut().flat_map(
            |WorkloadResults {
                 name: workload,
                 cases,
                 ..
             }| {
                let workload: &str = workload;
                cases.iter_mut().flat_map(
                    move |CaseResults {
                              name: case,
                              metrics,
                              ..
                          }| {
                        let case: &str = case;
                        metrics
                            .iter_mut()
                            .map(move |metric| ([workload, case], metric))
                    },
                )
            },
        )
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
    ///
    /// # Errors
    ///
    /// If `notes.json` is invalid.
    pub fn annotate(&mut self) -> Result<()> {
        let notes = serde_json::from_str(include_str!("../notes.json")).context("notes.json")?;
        for ([workload, case], metric) in self.metrics_mut() {
            metric.note = note(&notes, [workload, case, &metric.metric.name]);
        }
        Ok(())
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

/// Explanations of the metrics in which Pirn loses: why, and what would help. In `notes.json`, by
/// `workload/case/metric`, where `*` stands for every case or every metric.
fn note(notes: &BTreeMap<String, String>, [workload, case, metric]: [&str; 3]) -> Option<String> {
    let keys = [[case, metric], ["*", metric], [case, "*"], ["*", "*"]];
    let mut keys = keys
        .map(|[case, metric]| format!("{workload}/{case}/{metric}"))
        .into_iter();
    keys.find_map(|key| notes.get(&key)).cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(better: Better, values: &[(&str, &[f64])]) -> Option<Verdict> {
        let row = |(peer, values): &(&str, &[f64])| Row::new(peer, values.to_vec(), None);
        let rows = values.iter().map(row).collect();
        MetricResults::new(Metric::of("m", "s", better), rows, vec![]).verdict
    }

    #[test]
    fn the_best_of_the_others_is_compared_round_by_round() {
        let ours: &[f64] = &[2.0, 8.0, 2.0];
        let rows: &[(&str, &[f64])] = &[("go", &[3.0; 3]), (PIRN, ours), ("may", &[2.0, 4.0, 1.0])];
        let verdict = verdict(Better::Lower, rows).unwrap();
        assert_eq!((verdict.best.as_str(), verdict.loses), ("may", true));
        assert_eq!((verdict.median, verdict.min, verdict.max), (2.0, 1.0, 2.0));
    }

    #[test]
    fn less_loses_where_higher_is_better_and_a_margin_does_not() {
        let loses = |ours: f64| {
            let rows: &[(&str, &[f64])] = &[(PIRN, &[ours]), ("go", &[100.0]), ("may", &[50.0])];
            verdict(Better::Higher, rows).unwrap().loses
        };
        assert_eq!([97.0, 99.0, 120.0].map(loses), [true, false, false]);
    }

    #[test]
    fn no_errors_on_both_sides_is_a_draw() {
        let of = |ours: f64| verdict(Better::Lower, &[(PIRN, &[ours]), ("go", &[0.0])]).unwrap();
        assert_eq!((of(0.0).median, of(1.0).loses), (1.0, true));
        assert_eq!(verdict(Better::Lower, &[(PIRN, &[1.0])]), None);
    }

    #[test]
    fn a_library_is_not_compared_with_the_server_of_a_textbook() {
        let rows: &[(&str, &[f64])] = &[
            ("pirn-http", &[90.0]),
            ("pirn-textbook", &[200.0]),
            ("tokio", &[100.0]),
        ];
        assert_eq!(verdict(Better::Higher, rows).unwrap().best, "tokio");
    }

    #[test]
    fn the_closest_explanation_is_taken() {
        let notes = [("w/*/m", "any case"), ("w/c/m", "this")];
        let notes = notes
            .map(|(key, text)| (key.to_owned(), text.to_owned()))
            .into();
        assert_eq!(note(&notes, ["w", "c", "m"]).as_deref(), Some("this"));
        assert_eq!(note(&notes, ["w", "d", "m"]).as_deref(), Some("any case"));
        assert_eq!(note(&notes, ["w", "c", "n"]), None);
    }
}
