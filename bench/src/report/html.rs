//! The page: its head, the losses and the wins of Pirn. `section` has the workloads.

use super::plots::Chart;
use super::summary::{self, Outcome};
use super::{overview, palette, section};
use crate::catalog::Better;
use crate::results::{
    CaseResults, MetricResults, PeerInfo, Results, WorkloadResults, is_ours, number,
};
use maud::{DOCTYPE, Markup, PreEscaped, html};

const STYLE: &str = include_str!("style.css");

pub fn page(results: &Results) -> Markup {
    let style = format!(
        "{STYLE}@media(prefers-color-scheme:dark){{{}}}",
        palette::dark_rules()
    );
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                title { "Pirn beside its peers, " (results.date) }
                style { (PreEscaped(style)) }
            }
            body {
                (header(results))
                (losses(results))
                (wins(results))
                @for workload in &results.workloads { (section::section(results, workload)) }
            }
        }
    }
}

fn header(results: &Results) -> Markup {
    html! {
        header {
            h1 { "Pirn beside its peers" }
            @if results.quick { p.warning { "--quick: THESE NUMBERS MEAN NOTHING" } }
            dl {
                dt { "Machine" } dd { (summary::machine(results)) }
                dt { "Date" } dd { (results.date) " UTC" }
                dt { "Command" } dd { code { (summary::command(results)) } }
            }
            (peers(results))
            (contents(results))
        }
    }
}

fn peers(results: &Results) -> Markup {
    let row = |info: &PeerInfo| {
        html! {
            tr.absent[info.skipped.is_some()] {
                td.name { (section::dot(results, &info.name)) (info.title) }
                td {
                    @match (&info.skipped, &info.version) {
                        (Some(why), _) => { b { "skipped: " } span.words { (why) } }
                        (None, Some(version)) => (version),
                        (None, None) => "it never got to say",
                    }
                }
                td { code { (info.flags) } }
            }
        }
    };
    html! {
        table.peers {
            thead { tr { th { "Peer" } th { "Version" } th { "Built and started with" } } }
            tbody { @for info in &results.peers { (row(info)) } }
        }
    }
}

fn contents(results: &Results) -> Markup {
    html! {
        nav {
            a href="#losses" { "Where Pirn loses" }
            a href="#wins" { "Where Pirn wins" }
            @for workload in &results.workloads {
                a href={ "#" (section::anchor(workload)) } { (workload.name) }
            }
        }
    }
}

type Entry<'a> = (&'a WorkloadResults, &'a CaseResults, &'a MetricResults);

fn losses(results: &Results) -> Markup {
    let losses = summary::worst_losses(results);
    html! {
        section #losses {
            h2 { "Where Pirn loses" }
            @if summary::compared(results) == 0 {
                p { "Nothing to compare: it takes Pirn and one more." }
            } @else if losses.is_empty() {
                p { "Nowhere: no other peer has a median that is better by more than 2 %." }
            } @else {
                p.faint { "Against the best of the others, by more than 2 % of the median; the worst first. \
                    The ratio is Pirn's value to the other's, in brackets from the least to the most of all rounds." }
                div.scroll { table.losses {
                    thead { tr {
                        th { "Where" } th { "Metric" } th.number { "Pirn" } th.number { "Best other" }
                        th { "Ratio" } th { "Why, and what would help" }
                    } }
                    tbody { @for loss in losses { (loss_row(results, loss)) } }
                } }
            }
            (failures_of_ours(results))
            (missed_goals(results))
        }
    }
}

fn loss_row(results: &Results, (workload, case, metric): Entry) -> Markup {
    let value = |peer: &str| summary::row_of(metric, peer).map(|row| number(row.median));
    html! {
        @if let Some(verdict) = &metric.verdict {
            tr {
                td { (link(workload, case)) }
                td { (metric.metric.name) br; span.faint { (metric.metric.unit) (more(metric)) } }
                td.number { (metric.ours().map(|row| number(row.median)).unwrap_or_default()) }
                td.number {
                    (value(&verdict.best).unwrap_or_default()) br;
                    span.faint { (results.title(&verdict.best)) }
                }
                td.loss { (summary::ratio_with_spread(verdict)) }
                td {
                    @match &metric.note {
                        Some(note) => (note),
                        None => { em { "not yet explained" } }
                    }
                }
            }
        }
    }
}

/// Returns a remark on metrics that differ from most.
fn more(metric: &MetricResults) -> &'static str {
    match metric.metric.better {
        Better::Lower => "",
        Better::Higher => ", higher is better",
    }
}

/// Returns the comparisons that Pirn lacks, though it should have them.
fn failures_of_ours(results: &Results) -> Markup {
    let ours: Vec<_> = results
        .failures()
        .filter(|(_, _, failure)| is_ours(&failure.peer))
        .collect();
    html! {
        @if !ours.is_empty() {
            h3 { "Where Pirn gives no number" }
            ul {
                @for (workload, case, failure) in ours {
                    li { (link(workload, case)) ": " span.words { (failure.why) } }
                }
            }
        }
    }
}

fn missed_goals(results: &Results) -> Markup {
    let missed = summary::missed_goals(results);
    html! {
        @if !missed.is_empty() {
            h3 { "Goals that Pirn misses" }
            ul {
                @for (workload, case, metric) in missed {
                    li {
                        (link(workload, case)) ", " (metric.metric.name) ": "
                        @if let (Some((goal, _)), Some(ours)) =
                            (summary::goal_met(metric), metric.ours())
                        {
                            b { (number(ours.median)) } " where "
                            (summary::with_unit(goal, &metric.metric)) " is the goal"
                        }
                    }
                }
            }
        }
    }
}

fn link(workload: &WorkloadResults, case: &CaseResults) -> Markup {
    html! { a href={ "#" (section::anchor(workload)) } { (summary::place(workload, case)) } }
}

fn wins(results: &Results) -> Markup {
    let count = |outcome| {
        results
            .metrics()
            .filter(|(_, _, metric)| summary::outcome(metric) == Some(outcome))
            .count()
    };
    let [won, drawn, lost] = [Outcome::Win, Outcome::Draw, Outcome::Loss].map(count);
    html! {
        section #wins {
            h2 { "Where Pirn wins" }
            @match overview::chart(results) {
                None => { p { "Nothing to compare: it takes Pirn and one more." } }
                Some(svg) => {
                    p {
                        "Pirn wins " b { (won) } " of " (won + drawn + lost) " comparisons with the best other peer, loses "
                        b { (lost) }
                        ", and is within 2 % of it in " (drawn) "."
                    }
                    p.faint {
                        "Each row is Pirn's value to that of the best other peer, which is named on the right; the line reaches \
                        from the least to the most of all rounds. Left of the line at 1 Pirn is better: \
                        the ratios of metrics with ↑, of which more is better, are turned over for \
                        their place in the picture, though not in the text. \
                        The axis is logarithmic."
                    }
                    figure.wide { (PreEscaped(svg)) }
                }
            }
        }
    }
}

/// Returns a chart with its title.
pub fn figure(chart: &Chart) -> Markup {
    html! {
        figure {
            figcaption { b { (chart.title) } " " span.faint { (chart.remark) } }
            // Made by the library, which escapes the text in it.
            (PreEscaped(&chart.svg))
        }
    }
}

#[cfg(test)]
mod tests;
