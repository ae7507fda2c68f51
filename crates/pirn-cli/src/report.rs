//! The table at the end of a demo.

use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use hdrhistogram::Histogram;
use indicatif::{BinaryBytes, HumanCount};

use crate::measure::Usage;
use crate::tally::Errors;

/// What came out of one run.
pub struct Outcome {
    /// The kind of thread it ran on.
    pub kind: &'static str,
    /// Users that were connected at the same time.
    pub users: usize,
    /// Latency of each answered request, in microseconds.
    pub latencies: Histogram<u64>,
    /// What failed.
    pub errors: Errors,
    /// From the first request to the end of the last.
    pub elapsed: Duration,
    /// The process before the run.
    pub before: Usage,
    /// The highest usage during the run.
    pub peak: Usage,
}

impl Outcome {
    /// Answered requests per second.
    fn throughput(&self) -> f64 {
        let seconds = self.elapsed.as_secs_f64();
        if seconds > 0.0 {
            self.latencies.len() as f64 / seconds
        } else {
            0.0
        }
    }

    /// The values of this run's column, in the order of [`ROWS`].
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

/// One row for each value, one column for each run.
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

/// The lines below the table: the first few errors of a run, with how often each occurred.
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

/// A number with its thousands apart, as all reports print them.
pub fn count(number: u64) -> String {
    HumanCount(number).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(kind: &'static str) -> Outcome {
        let mut latencies = Histogram::new(3).unwrap();
        for micros in [1_000, 1_000, 1_000, 5_000] {
            latencies.record(micros).unwrap();
        }
        let usage = |mib: u64, threads| Usage {
            resident: mib << 20,
            page_tables: 0,
            threads,
        };
        Outcome {
            kind,
            users: 20_000,
            latencies,
            errors: Errors {
                count: 1_234,
                first: vec![("connect: refused".into(), 1_000)],
            },
            elapsed: Duration::from_millis(2),
            before: usage(10, 1),
            peak: usage(110, 16_384),
        }
    }

    #[test]
    fn the_table_has_a_row_for_each_value_and_a_column_for_each_run() {
        let table = table(&[outcome("virtual threads"), outcome("platform threads")]);
        let row = |name: &str| {
            let line = table.lines().find(|line| line.contains(name));
            let line = line.unwrap_or_else(|| panic!("no {name} in\n{table}"));
            let cells: Vec<_> = line.split(['│', '┆']).map(str::trim).collect();
            assert_eq!(cells[2], cells[3], "both runs were the same");
            cells[2].to_owned()
        };
        assert_eq!(row("users"), "20,000");
        assert_eq!(row("requests answered"), "4");
        assert_eq!(row("errors"), "1,234");
        assert_eq!(row("throughput"), "2,000/s");
        assert_eq!(row("mean"), "2.0 ms");
        assert_eq!(row("p50"), "1.0 ms");
        assert_eq!(row("max"), "5.0 ms");
        assert_eq!(row("OS threads"), "16,384");
        assert_eq!(row("resident memory"), "110.00 MiB");
        assert_eq!(row("this run's"), "100.00 MiB");
        assert!(table.contains("virtual threads ┆ platform threads"));
    }

    #[test]
    fn a_run_without_an_answer_has_no_latency() {
        let mut empty = outcome("virtual threads");
        empty.latencies.reset();
        empty.elapsed = Duration::ZERO;
        let column = empty.column();
        assert_eq!(&column[3..6], ["0/s", "-", "-"]);
    }

    #[test]
    fn the_first_errors_are_listed_with_their_counts() {
        let mut some = outcome("virtual threads");
        assert_eq!(
            errors(&some),
            "errors on virtual threads:\n  1,000 x connect: refused\n  234 of other kinds\n"
        );
        some.errors = Errors::default();
        assert_eq!(errors(&some), "");
    }
}
