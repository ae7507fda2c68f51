//! The table for the terminal.

use super::summary::{self, Missing};
use crate::results::{
    CaseResults, MetricResults, PeerInfo, Results, Row, WorkloadResults, is_ours,
};
use crate::text::number;

/// Columns of the terminal.
const WIDTH: usize = 110;
/// Letters of an error that are shown. All of them are in the other forms of the results.
const LONGEST: usize = 600;
const NAME: usize = 26;
const NUMBER: usize = 13;

pub fn table(results: &Results) -> String {
    let mut out = Out(String::new());
    out.head(results);
    for workload in &results.workloads {
        out.workload(results, workload);
    }
    out.losses(results);
    out.missed_goals(results);
    out.failures(results);
    out.warning(results);
    out.0
}

/// The text written so far.
struct Out(String);

impl Out {
    fn line(&mut self, text: &str) {
        self.0.push_str(text.trim_end());
        self.0.push('\n');
    }

    /// Text that goes on in further lines, indented by so much, where it is too long.
    fn wrapped(&mut self, first: &str, text: &str, indent: usize) {
        let text = summary::shortened(&summary::clean(text), LONGEST);
        let words = text.split(' ');
        let words = words.flat_map(|word| pieces(word, WIDTH - indent));
        for line in summary::filled(first, words, WIDTH, indent) {
            self.line(&line);
        }
    }

    fn heading(&mut self, text: &str) {
        self.line(&format!("\n{text}"));
    }

    fn head(&mut self, results: &Results) {
        self.wrapped(
            "",
            &format!("{} UTC, {}", results.date, summary::machine(results)),
            2,
        );
        self.wrapped("", &summary::command(results), 2);
        self.warning(results);
        self.heading("PEERS");
        for info in &results.peers {
            self.peer(info);
        }
    }

    fn warning(&mut self, results: &Results) {
        if results.quick {
            self.heading("--quick: THESE NUMBERS MEAN NOTHING");
        }
    }

    fn peer(&mut self, info: &PeerInfo) {
        let name = format!("  {:<NAME$}", format!("{}  ", info.title));
        let indent = 2 + NAME;
        match &info.skipped {
            Some(why) => self.wrapped(&name, &format!("skipped: {why}"), indent),
            None => self.wrapped(
                &name,
                info.version.as_deref().unwrap_or("version unknown"),
                indent,
            ),
        }
        if !info.flags.is_empty() {
            self.wrapped(&" ".repeat(indent), &info.flags, indent);
        }
    }

    fn workload(&mut self, results: &Results, workload: &WorkloadResults) {
        self.heading(&workload.name.to_uppercase());
        self.wrapped("  ", &workload.about, 2);
        if let Some(run) = &workload.run {
            self.wrapped("  run: ", run, 7);
        }
        for source in &workload.sources {
            self.wrapped("  elsewhere: ", source, 13);
        }
        for case in &workload.cases {
            self.case(results, case);
        }
    }

    fn case(&mut self, results: &Results, case: &CaseResults) {
        self.line("");
        let separator = if case.name.is_empty() { "" } else { ": " };
        self.wrapped(
            "  ",
            &format!("{}{separator}{}", case.name, case.parameters),
            4,
        );
        for metric in &case.metrics {
            self.metric(results, metric);
        }
        for missing in summary::failed(case) {
            self.missing(results, &missing);
        }
    }

    fn metric(&mut self, results: &Results, metric: &MetricResults) {
        let what = format!(
            "{}, {}",
            metric.metric.name,
            summary::direction(&metric.metric)
        );
        let names = ["median", "min", "max"]
            .map(|name| format!("{name:>NUMBER$}"))
            .concat();
        // Two of the indentation and two between name and number are the row's as well.
        let header = format!("    {what:<0$}{names}", NAME + 8);
        self.line(&if metric.rows.is_empty() {
            format!("    {what}")
        } else {
            header
        });
        for row in summary::ranked(metric) {
            self.row(results, row, &metric.metric.unit);
        }
        for missing in summary::skipped(metric) {
            self.missing(results, &missing);
        }
        if let Some(verdict) = &metric.verdict {
            let lost = if verdict.loses { "  << LOSS" } else { "" };
            self.line(&format!(
                "      {}{lost}",
                summary::comparison(results, metric, verdict)
            ));
        }
        if let Some((goal, met)) = summary::goal_met(metric) {
            let met = if met { "met" } else { "MISSED" };
            self.line(&format!(
                "      goal {}: {met}",
                summary::with_unit(goal, &metric.metric)
            ));
        }
    }

    fn row(&mut self, results: &Results, row: &Row, unit: &str) {
        let mark = if is_ours(&row.peer) { '>' } else { ' ' };
        let name = summary::shortened(results.title(&row.peer), NAME + 4);
        let numbers = [row.median, row.min, row.max]
            .map(|v| format!("{:>NUMBER$}", number(v)))
            .concat();
        self.line(&format!("    {mark} {name:<0$}{numbers}  {unit}", NAME + 6));
        if let Some(remark) = &row.remark {
            self.wrapped("        (", &format!("{remark})"), 9);
        }
    }

    fn missing(&mut self, results: &Results, missing: &Missing) {
        let first = format!("      {} {}: ", results.title(missing.peer), missing.word);
        self.wrapped(&first, missing.why, 8);
    }

    fn losses(&mut self, results: &Results) {
        let losses = summary::worst_losses(results);
        self.heading(&match (losses.len(), summary::compared(results)) {
            (_, 0) => "PIRN IS COMPARED with nothing".to_owned(),
            (count, of) => format!("PIRN LOSES in {count} of {of}"),
        });
        for (workload, case, metric) in losses {
            let Some(verdict) = &metric.verdict else {
                continue;
            };
            let what = summary::label(workload, case, metric);
            let values = [metric.ours(), metric.row(&verdict.best)]
                .map(|row| row.map_or(f64::NAN, |row| row.median));
            let values = format!(
                "{} against {}",
                number(values[0]),
                summary::with_unit(values[1], &metric.metric)
            );
            self.wrapped(
                "  ",
                &format!(
                    "{what}: {}, {values}",
                    summary::comparison(results, metric, verdict)
                ),
                4,
            );
            self.wrapped(
                "      ",
                metric.note.as_deref().unwrap_or("not yet explained"),
                6,
            );
        }
    }

    fn missed_goals(&mut self, results: &Results) {
        let missed = summary::missed_goals(results);
        if !missed.is_empty() {
            self.heading(&format!("GOALS MISSED: {}", missed.len()));
        }
        for (workload, case, metric) in missed {
            let (Some((goal, _)), Some(ours)) = (summary::goal_met(metric), metric.ours()) else {
                continue;
            };
            let what = summary::label(workload, case, metric);
            let ours = summary::with_unit(ours.median, &metric.metric);
            self.wrapped("  ", &format!("{what}: {ours}, goal {}", number(goal)), 4);
        }
    }

    /// Writes the unexpected failures.
    fn failures(&mut self, results: &Results) {
        let failures: Vec<_> = results
            .failures()
            .filter(|(_, _, failure)| !failure.expected)
            .collect();
        if !failures.is_empty() {
            self.heading(&format!("FAILURES: {}", failures.len()));
        }
        for (workload, case, failure) in failures {
            let first = format!(
                "  {}: {}: ",
                summary::place(workload, case),
                results.title(&failure.peer)
            );
            self.wrapped(&first, &failure.why, 4);
        }
    }
}

/// A word in pieces of at most this many letters.
fn pieces(word: &str, most: usize) -> Vec<String> {
    let letters: Vec<char> = word.chars().collect();
    letters
        .chunks(most)
        .map(|piece| piece.iter().collect())
        .collect()
}

#[cfg(test)]
mod tests;
