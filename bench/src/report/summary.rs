//! The common content of the two tables: rankings, ratios, goals, missing numbers, texts.

use crate::catalog::{Better, Metric};
use crate::results::{CaseResults, MetricResults, PIRN, Results, Row, Verdict, WorkloadResults};
use crate::text::number;

/// Returns the rows, the best first.
pub fn ranked(metric: &MetricResults) -> Vec<&Row> {
    let mut rows: Vec<&Row> = metric.rows.iter().collect();
    match metric.metric.better {
        Better::Lower => rows.sort_by(|a, b| a.median.total_cmp(&b.median)),
        Better::Higher => rows.sort_by(|a, b| b.median.total_cmp(&a.median)),
    }
    rows
}

/// Returns the losses, the worst first.
pub fn worst_losses(results: &Results) -> Vec<(&WorkloadResults, &CaseResults, &MetricResults)> {
    let mut losses: Vec<_> = results.losses().collect();
    let worse = |metric: &MetricResults| {
        metric
            .verdict
            .as_ref()
            .map_or(0.0, |v| metric.worse(v.median))
    };
    losses.sort_by(|(_, _, a), (_, _, b)| worse(b).total_cmp(&worse(a)));
    losses
}

/// Returns the number of metrics in which Pirn is compared with others.
pub fn compared(results: &Results) -> usize {
    results
        .metrics()
        .filter(|(_, _, metric)| metric.verdict.is_some())
        .count()
}

/// Returns whether Pirn meets the goal, if there is one and Pirn has a value.
pub fn goal_met(metric: &MetricResults) -> Option<(f64, bool)> {
    let goal = metric.metric.goal?;
    let ours = metric.ours()?.median;
    let met = match metric.metric.better {
        Better::Lower => ours <= goal,
        Better::Higher => ours >= goal,
    };
    Some((goal, met))
}

/// Returns the goals that Pirn misses.
pub fn missed_goals(results: &Results) -> Vec<(&WorkloadResults, &CaseResults, &MetricResults)> {
    let missed = |metric: &MetricResults| goal_met(metric).is_some_and(|(_, met)| !met);
    results
        .metrics()
        .filter(|(_, _, metric)| missed(metric))
        .collect()
}

/// A peer without a number, with a short and a full reason.
pub struct Missing<'a> {
    pub peer: &'a str,
    pub word: &'static str,
    pub why: &'a str,
}

/// Returns the peers that have no number of any metric of this case.
pub fn failed(case: &CaseResults) -> impl Iterator<Item = Missing<'_>> {
    case.failures.iter().map(|failure| Missing {
        peer: &failure.peer,
        word: if failure.expected { "cannot" } else { "failed" },
        why: &failure.why,
    })
}

/// Returns the peers that cannot measure this metric.
pub fn skipped(metric: &MetricResults) -> impl Iterator<Item = Missing<'_>> {
    metric.skipped.iter().map(|skip| Missing {
        peer: &skip.peer,
        word: if skip.expected {
            "not measured"
        } else {
            "failed"
        },
        why: &skip.why,
    })
}

/// `parked, 10,000 threads: bytes`.
pub fn label(workload: &WorkloadResults, case: &CaseResults, metric: &MetricResults) -> String {
    format!("{}: {}", place(workload, case), metric.metric.name)
}

/// `parked, 10,000 threads`.
pub fn place(workload: &WorkloadResults, case: &CaseResults) -> String {
    match case.name.as_str() {
        "" => workload.name.clone(),
        case => format!("{}, {case}", workload.name),
    }
}

pub fn direction(metric: &Metric) -> &'static str {
    match metric.better {
        Better::Lower => "lower is better",
        Better::Higher => "higher is better",
    }
}

/// `Pirn / Go 0.420 (0.400 to 0.450)`.
pub fn comparison(results: &Results, metric: &MetricResults, verdict: &Verdict) -> String {
    let ours = metric.ours().map_or(PIRN, |row| &row.peer);
    let names = format!("{} / {}", results.title(ours), results.title(&verdict.best));
    format!("{names} {}", ratio_with_spread(verdict))
}

/// `0.420 (0.400 to 0.450)`; no spread where there was one round only.
pub fn ratio_with_spread(verdict: &Verdict) -> String {
    let Verdict {
        median, min, max, ..
    } = *verdict;
    if min == max {
        return number(median);
    }
    format!("{} ({} to {})", number(median), number(min), number(max))
}

/// `146.2 ns/thread`.
pub fn with_unit(value: f64, metric: &Metric) -> String {
    format!("{} {}", number(value), metric.unit)
}

/// Returns the command line, to repeat the run.
pub fn command(results: &Results) -> String {
    let quoted = |argument: &String| match argument.contains(char::is_whitespace) {
        true => format!("'{argument}'"),
        false => argument.clone(),
    };
    let words = std::iter::once("bench".to_owned()).chain(results.arguments.iter().map(quoted));
    words.collect::<Vec<_>>().join(" ")
}

/// Returns the machine in one line.
pub fn machine(results: &Results) -> String {
    let machine = &results.machine;
    let gib = machine.memory_kib as f64 / f64::from(1 << 20);
    let cores = if machine.cores == 1 { "core" } else { "cores" };
    let processor = if machine.processor.is_empty() {
        "unknown processor"
    } else {
        &machine.processor
    };
    format!(
        "{processor}, {} {cores}, {gib:.1} GiB, Linux {}",
        machine.cores, machine.kernel
    )
}

/// Returns words in lines of a width, which go on after `first`, and are indented by so much from
/// the second on. A word that is longer has a line of its own.
pub fn filled(
    first: &str,
    words: impl Iterator<Item = String>,
    width: usize,
    indent: usize,
) -> Vec<String> {
    let mut lines = Vec::new();
    let mut line = first.to_owned();
    let mut fresh = true;
    for word in words {
        if !fresh && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(std::mem::replace(&mut line, " ".repeat(indent)));
            fresh = true;
        }
        if !fresh {
            line.push(' ');
        }
        line.push_str(&word);
        fresh = false;
    }
    lines.push(line);
    lines
}

/// Returns arbitrary text of a program in one line, without control characters for a terminal.
pub fn clean(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace(char::is_control, "")
}

/// At most this many characters, with an ellipsis in place of the rest.
pub fn shortened(text: &str, most: usize) -> String {
    if text.chars().count() <= most {
        return text.into();
    }
    let kept: String = text.chars().take(most.saturating_sub(1)).collect();
    kept.trim_end().to_owned() + "…"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn foreign_text_is_one_line_without_control_characters() {
        assert_eq!(clean("a\x1b[31m\n\n  b\tc\0"), "a[31m b c");
        assert_eq!(
            [shortened("abcdef", 4), shortened("äöüß", 4)],
            ["abc…", "äöüß"]
        );
    }
}
