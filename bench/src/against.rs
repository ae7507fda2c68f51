//! Compares Pirn's numbers of two runs, to find the cost of a change.
//!
//! A metric is compared if both runs have it with the same parameters. It has *lost* if its median
//! is worse than the earlier run's by more than the tolerated loss. Medians of few rounds differ
//! between runs of the same program by some per cent, the medians of `http` by more: a real loss
//! comes back when the two programs are measured again in turn.

use crate::results::{MetricResults, PIRN, Results};
use crate::text::number;
use anyhow::{Result, ensure};
use std::fmt::Write;

/// The result of a comparison.
pub struct Comparison {
    lines: Vec<Line>,
    /// How much worse a metric may be: 0.1 for a tenth.
    loss: f64,
    /// Reasons for which the numbers are less comparable.
    warnings: Vec<String>,
}

/// A metric of both runs.
struct Line {
    /// `spawn 100,000: burst`.
    name: String,
    before: f64,
    now: f64,
    /// How many times worse it is now: below 1 if it is better.
    worse: f64,
}

impl Comparison {
    /// Compares `now` with `before`, and tolerates metrics that are worse by `loss`.
    ///
    /// # Errors
    ///
    /// If the two have nothing in common, or one has sizes that are only for trying out.
    pub fn new(before: &Results, now: &Results, loss: f64) -> Result<Comparison> {
        ensure!(
            before.quick == now.quick,
            "one of the two runs is --quick: its sizes are others"
        );
        let lines: Vec<Line> = now
            .metrics()
            .filter(|(_, _, metric)| !metric.metric.part)
            .filter_map(|(workload, case, metric)| {
                let name = [&*workload.name, &*case.name, &*metric.metric.name];
                let earlier = find(before, name, &case.parameters)?;
                line(name, earlier, metric)
            })
            .collect();
        ensure!(
            !lines.is_empty(),
            "the two runs have no number of {PIRN}'s in common (by workload, case, parameters and metric)"
        );
        Ok(Comparison {
            lines,
            loss,
            warnings: differences(before, now),
        })
    }

    /// Returns the number of metrics that are worse by more than the tolerated loss.
    pub fn losses(&self) -> usize {
        self.lines.iter().filter(|line| self.lost(line)).count()
    }

    /// Returns the number of metrics that both runs have.
    pub fn compared(&self) -> usize {
        self.lines.len()
    }

    fn lost(&self, line: &Line) -> bool {
        line.worse > 1.0 + self.loss
    }

    /// Returns the comparison as a table for the terminal, losses marked.
    pub fn table(&self) -> String {
        let mut out = String::from("\nPirn, against the earlier run\n\n");
        for warning in &self.warnings {
            let _ = writeln!(out, "  note: {warning}");
        }
        let _ = writeln!(
            out,
            "  {:<48} {:>13} {:>13} {:>9}",
            "", "before", "now", "worse by"
        );
        for line in &self.lines {
            let mark = if self.lost(line) { "  LOST" } else { "" };
            let _ = writeln!(
                out,
                "  {:<48} {:>13} {:>13} {:>8.1}%{mark}",
                line.name,
                number(line.before),
                number(line.now),
                (line.worse - 1.0) * 100.0
            );
        }
        out
    }
}

/// Returns Pirn's metric of this name in a run, if its case had these parameters.
fn find<'a>(results: &'a Results, name: [&str; 3], parameters: &str) -> Option<&'a MetricResults> {
    let mut metrics = results.metrics();
    let found = metrics.find(|(workload, case, metric)| {
        [&*workload.name, &*case.name, &*metric.metric.name] == name
            && case.parameters == parameters
    });
    found.map(|(_, _, metric)| metric)
}

fn line(
    [workload, case, metric]: [&str; 3],
    before: &MetricResults,
    now: &MetricResults,
) -> Option<Line> {
    let (earlier, row) = (before.ours()?, now.ours()?);
    // None at all in both runs, of errors for example, is no change.
    let ratio = match earlier.median == row.median {
        true => 1.0,
        false => row.median / earlier.median,
    };
    let separator = if case.is_empty() { "" } else { ", " };
    Some(Line {
        name: format!("{workload}{separator}{case}: {metric}"),
        before: earlier.median,
        now: row.median,
        worse: now.worse(ratio),
    })
}

/// Returns what differs between the runs, apart from the measured program.
fn differences(before: &Results, now: &Results) -> Vec<String> {
    let (old, new) = (&before.machine, &now.machine);
    let mut differences = Vec::new();
    let mut differ = |what: &str, old: &str, new: &str| {
        if old != new {
            differences.push(format!("another {what}: {old} then, {new} now"));
        }
    };
    differ("processor", &old.processor, &new.processor);
    differ(
        "number of cores",
        &old.cores.to_string(),
        &new.cores.to_string(),
    );
    differ("kernel", &old.kernel, &new.kernel);
    differences
}

#[cfg(test)]
mod tests;
