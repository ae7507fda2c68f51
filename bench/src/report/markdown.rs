//! The results in Markdown, as `bench/README.md` has them: a table, and the losses with their
//! reasons.

use super::summary;
use crate::catalog::Better;
use crate::results::{CaseResults, MetricResults, Results, WorkloadResults};
use crate::text::number;
use std::fmt::Write as _;

/// Returns the results in Markdown.
pub fn page(results: &Results) -> String {
    let mut out = head(results);
    out.push_str(&table(results));
    out.push('\n');
    for loss in losses(results) {
        out.push_str(&wrapped(&loss, 2));
    }
    out
}

fn head(results: &Results) -> String {
    let is_first = |metric: &MetricResults| {
        let both = metric.best().zip(metric.ours());
        both.is_some_and(|(best, ours)| best.peer == ours.peer)
    };
    let lines = || results.metrics().filter(|(_, _, metric)| is_line(metric));
    let first = lines().filter(|(_, _, metric)| is_first(metric));
    let text = format!(
        "{} UTC, {}; `{}`. Pirn has the best median in {} of {} lines.",
        results.date,
        summary::machine(results),
        summary::command(results),
        first.count(),
        lines().count()
    );
    wrapped(&text, 0) + "\n"
}

/// Whether a metric has a line: some peer has a value.
fn is_line(metric: &MetricResults) -> bool {
    !metric.rows.is_empty()
}

/// One line per metric, one column per peer that has a value anywhere; the best in bold.
fn table(results: &Results) -> String {
    let has_value = |peer: &str| {
        let mut metrics = results.metrics();
        metrics.any(|(_, _, metric)| metric.row(peer).is_some())
    };
    let peers: Vec<_> = results
        .peers
        .iter()
        .filter(|p| has_value(&p.name))
        .collect();
    let titles: Vec<_> = peers.iter().map(|peer| peer.title.as_str()).collect();
    let mut out = format!("| | unit | {} |\n|---|---|", titles.join(" | "));
    out.push_str(&"---|".repeat(peers.len()));
    out.push('\n');
    for (workload, case, metric) in results.metrics().filter(|(_, _, metric)| is_line(metric)) {
        let cells = peers.iter().map(|peer| cell(metric, &peer.name));
        let cells: Vec<_> = cells.collect();
        let what = what(workload, case, metric);
        let unit = &metric.metric.unit;
        // Writing to a string does not fail.
        let _ = writeln!(out, "| {what} | {unit} | {} |", cells.join(" | "));
    }
    out
}

/// `` `http`, 100 connections: requests ↑ ``.
fn what(workload: &WorkloadResults, case: &CaseResults, metric: &MetricResults) -> String {
    let case = match case.name.as_str() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    let up = match metric.metric.better {
        Better::Lower => "",
        Better::Higher => " ↑",
    };
    format!("`{}`{case}: {}{up}", workload.name, metric.metric.name)
}

fn cell(metric: &MetricResults, peer: &str) -> String {
    let Some(row) = metric.row(peer) else {
        return String::new();
    };
    let differ = metric.rows.iter().any(|other| other.median != row.median);
    let is_best = differ && metric.best().is_some_and(|best| best.median == row.median);
    let value = number(row.median);
    match is_best {
        true => format!("**{value}**"),
        false => value,
    }
}

/// The losses in the order of the workloads, those with the same reason together.
fn losses(results: &Results) -> Vec<String> {
    let mut groups: Vec<(&str, &str, Vec<String>)> = Vec::new();
    for (workload, case, metric) in results.losses() {
        let Some(verdict) = &metric.verdict else {
            continue;
        };
        let place = match case.name.as_str() {
            "" => String::new(),
            name => format!("{name}: "),
        };
        let best = results.title(&verdict.best);
        let medians = metric.ours().zip(metric.row(&verdict.best));
        let Some((ours, theirs)) = medians else {
            continue;
        };
        let ratio = ours.median / theirs.median;
        let line = format!("{place}{} {ratio:.2} × {best}", metric.metric.name);
        let note = metric.note.as_deref().unwrap_or("Not yet explained.");
        let same =
            |group: &&mut (&str, &str, Vec<String>)| (group.0, group.1) == (&workload.name, note);
        match groups.iter_mut().find(same) {
            Some(group) => group.2.push(line),
            None => groups.push((&workload.name, note, vec![line])),
        }
    }
    let text = |(workload, note, lines): (&str, &str, Vec<String>)| {
        format!("* **`{workload}`**: {}. {note}", lines.join("; "))
    };
    groups.into_iter().map(text).collect()
}

/// A text in lines of 100 columns, indented by so much from the second on.
fn wrapped(text: &str, indent: usize) -> String {
    let words = text.split_whitespace().map(str::to_owned);
    summary::filled("", words, 100, indent).join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::{page, wrapped};
    use crate::report::example;

    #[test]
    fn the_best_is_in_bold_and_each_peer_has_its_column() {
        let page = page(&example::results());
        let lines: Vec<&str> = page.lines().collect();
        let header = lines
            .iter()
            .find(|line| line.starts_with("| | unit | Pirn |"));
        let columns = header.expect("a header").matches('|').count();
        let rows = lines.iter().filter(|line| line.starts_with("| `"));
        for row in rows.clone() {
            assert_eq!(row.matches('|').count(), columns, "{row}");
        }
        assert!(
            rows.clone().any(|row| row.starts_with("| `spawn`: ")),
            "{page}"
        );
        let bold = rows.clone().filter(|row| row.contains("**"));
        assert_eq!(bold.count(), 4, "{page}");
    }

    #[test]
    fn losses_with_the_same_reason_are_one_item() {
        let results = example::results();
        let page = page(&results);
        let items = page
            .lines()
            .filter(|line| line.starts_with("* **`"))
            .count();
        assert!(items > 0 && items <= results.losses().count(), "{page}");
        assert!(
            page.lines()
                .all(|line| line.starts_with('|') || line.chars().count() <= 140)
        );
    }

    #[test]
    fn items_are_wrapped_at_100_columns() {
        let text = wrapped(&format!("* {}", "abcdefghi ".repeat(25)), 2);
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines.len() == 3 && lines[1].starts_with("  abc"), "{text}");
        assert!(lines.iter().all(|line| line.len() <= 100), "{text}");
    }
}
