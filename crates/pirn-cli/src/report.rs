//! The table at the end of a demo.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use indicatif::{BinaryBytes, HumanCount};
use pirn::metrics::Metrics;

use crate::measure::Usage;
use crate::tally::Errors;

/// The results of one run.
pub struct Outcome {
    /// The kind of thread it ran on.
    pub kind: &'static str,
    /// Users that were connected at the same time.
    pub users: usize,
    /// Latency of each answered request, in microseconds.
    pub latencies: Histogram<u64>,
    /// The errors.
    pub errors: Errors,
    /// The time from the first request to the end of the last.
    pub elapsed: Duration,
    /// The usage of the process before the run.
    pub before: Usage,
    /// The highest usage during the run.
    pub peak: Usage,
    /// The memory of virtual threads when all users were connected, if it ran on these.
    pub memory: Option<Metrics>,
}

impl Outcome {
    /// Returns the answered requests per second.
    fn throughput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 {
            self.latencies.len() as f64 / seconds
        } else {
            0.0
        }
    }

    /// Returns the values of this run's column, in the order of [`ROWS`].
    fn column(&self) -> [String; ROWS.len()] {
        let grown = self.peak.resident.saturating_sub(self.before.resident);
        let answered = !self.latencies.is_empty();
        let millis = |micros: f64| match answered {
            true => format!("{:.1} ms", micros / 1000.0),
            false => "-".into(),
        };
        [
            count(self.users as u64),
            count(self.latencies.len()),
            count(self.errors.count),
            format!("{}/s", count(self.throughput().round() as u64)),
            millis(self.latencies.mean()),
            millis(self.latencies.value_at_quantile(0.5) as f64),
            millis(self.latencies.value_at_quantile(0.99) as f64),
            millis(self.latencies.max() as f64),
            count(self.peak.threads),
            BinaryBytes(self.peak.resident).to_string(),
            BinaryBytes(grown).to_string(),
        ]
    }
}

const ROWS: [&str; 11] = [
    "users",
    "requests answered",
    "errors",
    "throughput",
    "latency, mean",
    "latency, p50",
    "latency, p99",
    "latency, max",
    "OS threads, peak",
    "resident memory, peak",
    "  of which this run's",
];

/// Returns a table with one row per value and one column per run.
pub fn table(outcomes: &[Outcome]) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_FULL_CONDENSED);
    table.set_header(std::iter::once("").chain(outcomes.iter().map(|outcome| outcome.kind)));
    let columns: Vec<_> = outcomes.iter().map(Outcome::column).collect();
    for (row, name) in ROWS.iter().enumerate() {
        let cells = columns.iter().map(|column| column[row].as_str());
        table.add_row(std::iter::once(*name).chain(cells));
    }
    for column in table.column_iter_mut().skip(1) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    table.to_string()
}

/// Returns lines on the memory that virtual threads have: of their own, and what the kernel needs
/// for it.
pub fn memory(metrics: &Metrics) -> String {
    let bytes = |part| BinaryBytes(metrics[&*format!("memory.{part}")]).to_string();
    let [stacks, tls, cached] = ["stacks", "tls", "stacks_cached"].map(bytes);
    let [records, timers] = ["records", "timers"].map(bytes);
    let [lot, tables] = ["parking_lot", "tables"].map(bytes);
    let [reserved, page_tables] = ["stacks_reserved", "page_tables"].map(bytes);
    let all = BinaryBytes(metrics.resident_memory());
    format!(
        "memory of virtual threads: {all}\n  stacks {stacks} (thread-locals {tls} of it), kept for \
         the next threads {cached}\n  records {records}, timers {timers}, waits for locks {lot}, \
         tables {tables}\n  page tables of the process {page_tables}, addresses set aside \
         {reserved}\n"
    )
}

/// Returns the lines below the table: the first few errors of a run, with how often each occurred.
pub fn errors(outcome: &Outcome) -> String {
    let Errors { count: all, first } = &outcome.errors;
    if *all == 0 {
        return String::new();
    }
    let mut lines = format!("errors on {}:\n", outcome.kind);
    for (error, times) in first {
        lines += &format!("  {} x {error}\n", count(*times));
    }
    let others = all - first.iter().map(|(_, times)| times).sum::<u64>();
    if others > 0 {
        lines += &format!("  {} of other kinds\n", count(others));
    }
    lines
}

/// Returns a number with commas between groups of three digits, as all reports print it.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

#[cfg(test)]
mod tests;
