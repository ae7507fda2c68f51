//! The results: collected, as a table, and as JSON (the fields of [`Report`]).

use crate::memory::kib_field;
use crate::stats::{least, median, most};
use crate::workload::{Sample, Size};
use anyhow::{Context, Result, ensure};
use serde::Serialize;
use std::fmt;

/// All that was measured.
#[derive(Serialize)]
pub struct Report {
    machine: Machine,
    /// Whether the sizes were the small ones, so that the numbers mean nothing.
    quick: bool,
    rounds: u32,
    rows: Vec<Row>,
    pub failures: Vec<Failure>,
}

/// The machine measured on.
#[derive(Serialize)]
struct Machine {
    processor: String,
    cores: usize,
    memory_kib: u64,
    kernel: String,
}

/// One metric of one workload.
#[derive(Serialize)]
struct Row {
    /// Whose threads were measured.
    runtime: &'static str,
    workload: String,
    metric: String,
    unit: String,
    median: f64,
    min: f64,
    max: f64,
    goals: Vec<f64>,
    /// The value of each round.
    values: Vec<f64>,
}

/// A workload without numbers.
#[derive(Serialize)]
pub struct Failure {
    workload: String,
    error: String,
}

impl Failure {
    pub fn new(workload: &str, error: &anyhow::Error) -> Failure {
        Failure {
            workload: workload.into(),
            error: format!("{error:#}"),
        }
    }
}

impl Report {
    pub fn new(rounds: u32, size: Size) -> Report {
        let quick = size == Size::Quick;
        Report {
            machine: Machine::this(),
            quick,
            rounds,
            rows: vec![],
            failures: vec![],
        }
    }

    /// Adds a row for each metric of a workload, given the samples of its rounds.
    pub fn add(&mut self, workload: &str, rounds: &[Vec<Sample>]) -> Result<()> {
        let first = rounds.first().context("no rounds")?;
        let metrics = |samples: &[Sample]| -> Vec<String> {
            samples.iter().map(|sample| sample.metric.clone()).collect()
        };
        let same = rounds.iter().all(|round| metrics(round) == metrics(first));
        ensure!(
            same,
            "the rounds of {workload} differ in what they measured"
        );
        for (i, sample) in first.iter().enumerate() {
            let values = rounds.iter().map(|round| round[i].value).collect();
            self.rows.push(Row::new(workload, sample, values));
        }
        Ok(())
    }
}

impl Row {
    fn new(workload: &str, sample: &Sample, values: Vec<f64>) -> Row {
        Row {
            runtime: "pirn",
            workload: workload.into(),
            metric: sample.metric.clone(),
            unit: sample.unit.clone(),
            median: median(&values),
            min: least(&values),
            max: most(&values),
            goals: sample.goals.clone(),
            values,
        }
    }

    /// The goals, and whether the median meets them.
    fn goals(&self) -> String {
        let verdict = |&goal: &f64| {
            let met = if self.median <= goal { "met" } else { "missed" };
            format!("≤ {} {met}", number(goal))
        };
        self.goals
            .iter()
            .map(verdict)
            .collect::<Vec<_>>()
            .join(", ")
    }
}

impl Machine {
    /// The machine this runs on. What the kernel does not tell stays empty.
    fn this() -> Machine {
        let read = |path| std::fs::read_to_string(path).unwrap_or_default();
        let cpuinfo = read("/proc/cpuinfo");
        let model = cpuinfo.lines().find(|line| line.starts_with("model name"));
        let processor = model
            .and_then(|line| line.split(": ").nth(1))
            .unwrap_or_default();
        Machine {
            processor: processor.into(),
            cores: std::thread::available_parallelism().map_or(0, |n| n.get()),
            memory_kib: kib_field(&read("/proc/meminfo"), "MemTotal").unwrap_or_default(),
            kernel: read("/proc/sys/kernel/osrelease").trim().into(),
        }
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Machine {
            processor,
            cores,
            memory_kib,
            kernel,
        } = &self.machine;
        let gib = *memory_kib as f64 / (1 << 20) as f64;
        writeln!(
            f,
            "{processor}, {cores} cores, {gib:.1} GiB, Linux {kernel}"
        )?;
        writeln!(f, "rounds: {}, after one to warm up", self.rounds)?;
        if self.quick {
            writeln!(
                f,
                "--quick: THESE NUMBERS MEAN NOTHING, and so do the verdicts on the goals"
            )?;
        }
        writeln!(f)?;
        let titles = ["workload", "metric", "median", "min", "max", "unit", "goal"];
        write_line(f, titles.map(String::from))?;
        let mut previous = "";
        for row in &self.rows {
            // The name only in the first of a workload's rows.
            let name = if row.workload == previous {
                ""
            } else {
                &row.workload
            };
            let [median, min, max] = [row.median, row.min, row.max].map(number);
            let (metric, unit) = (row.metric.clone(), row.unit.clone());
            write_line(
                f,
                [name.into(), metric, median, min, max, unit, row.goals()],
            )?;
            previous = &row.workload;
        }
        for failure in &self.failures {
            writeln!(f, "{:<20} FAILED: {}", failure.workload, failure.error)?;
        }
        Ok(())
    }
}

fn write_line(f: &mut fmt::Formatter<'_>, cells: [String; 7]) -> fmt::Result {
    let [workload, metric, median, min, max, unit, goal] = cells;
    let line =
        format!("{workload:<20} {metric:<28} {median:>9} {min:>9} {max:>9}  {unit:<16} {goal}");
    writeln!(f, "{}", line.trim_end())
}

/// A number in about four digits.
fn number(value: f64) -> String {
    let decimals = match value.abs() {
        v if v.fract() == 0.0 || v >= 1000.0 => 0,
        v if v >= 100.0 => 1,
        v if v >= 10.0 => 2,
        _ => 3,
    };
    format!("{value:.decimals$}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(value: f64) -> Vec<Sample> {
        vec![
            Sample::new("spawn", value, "ns/spawn").goals(&[8.0, 2.5]),
            Sample::new("n", 7.0, ""),
        ]
    }

    #[test]
    fn rows_have_median_and_extremes_of_all_rounds() {
        let mut report = Report::new(3, Size::Full);
        report
            .add("w", &[round(9.0), round(1.0), round(4.0)])
            .unwrap();
        let row = &report.rows[0];
        assert_eq!((row.median, row.min, row.max), (4.0, 1.0, 9.0));
        assert_eq!(row.goals(), "≤ 8 met, ≤ 2.500 missed");
        let table = report.to_string();
        assert!(table.contains("w                    spawn                                4         1         9  ns/spawn"), "{table}");
        assert!(!table.contains("MEAN NOTHING"));
    }

    #[test]
    fn rounds_that_measured_different_things_are_refused() {
        let other = vec![Sample::new("other", 1.0, "")];
        let error = Report::new(2, Size::Full)
            .add("w", &[round(1.0), other])
            .unwrap_err();
        assert!(error.to_string().contains("differ"), "{error}");
    }

    #[test]
    fn numbers_have_about_four_digits() {
        let numbers = [
            0.0123456, 1.23456, 12.3456, 123.456, 1234.56, 12345.6, 150.0,
        ];
        let expected = ["0.012", "1.235", "12.35", "123.5", "1235", "12346", "150"];
        assert_eq!(numbers.map(number), expected);
    }
}
