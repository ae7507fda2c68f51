//! The section of a workload on the page.

use super::palette;
use super::summary::{self, Missing};
use super::{html, plots};
use crate::results::{
    CaseResults, MetricResults, PeerInfo, Results, Row, WorkloadResults, is_ours, number,
};
use maud::{Markup, html};
use plotters::style::RGBColor;

/// Tables with more rows than this are closed at first.
const LONG: usize = 12;

/// Returns the target of links to the workload.
pub fn anchor(workload: &WorkloadResults) -> String {
    format!("w-{}", workload.name)
}

/// Returns a dot in the peer's colour in the charts.
pub fn dot(results: &Results, peer: &str) -> Markup {
    let RGBColor(red, green, blue) = palette::of_peer(results, peer);
    let colour = format!("#{red:02X}{green:02X}{blue:02X}");
    html! { svg.dot width="10" height="10" { circle cx="5" cy="5" r="5" fill=(colour) {} } }
}

pub fn section(results: &Results, workload: &WorkloadResults) -> Markup {
    let rows: usize = workload
        .cases
        .iter()
        .flat_map(|case| &case.metrics)
        .map(|metric| metric.rows.len())
        .sum();
    html! {
        section id=(anchor(workload)) {
            h2 { (workload.name) }
            p { (workload.about) }
            (beside(results, workload))
            (failures(results, workload))
            div.charts { @for chart in plots::charts(results, workload) { (html::figure(&chart)) } }
            details open[rows <= LONG] {
                summary { "All numbers" }
                @for case in &workload.cases { (table(results, case)) }
            }
        }
    }
}

/// Returns the measurements of others beside the medians measured here.
fn beside(results: &Results, workload: &WorkloadResults) -> Markup {
    html! {
        @if !workload.sources.is_empty() {
            h3 { "Measured elsewhere" }
            ul { @for source in &workload.sources { li { (source) } } }
            @if metrics(workload).any(|(_, metric)| !metric.rows.is_empty()) {
                h3 { "Measured here" }
                (medians(results, workload))
            }
        }
    }
}

/// Returns a table with one row per metric and one column per peer.
fn medians(results: &Results, workload: &WorkloadResults) -> Markup {
    let has_any = |info: &&PeerInfo| {
        metrics(workload).any(|(_, metric)| summary::row_of(metric, &info.name).is_some())
    };
    let peers: Vec<&PeerInfo> = results.peers.iter().filter(has_any).collect();
    html! {
        div.scroll { table.medians {
            thead { tr {
                th { "Median" }
                th { "Unit" }
                @for info in &peers { th.number.ours[is_ours(&info.name)] { (info.title) } }
            } }
            tbody { @for (case, metric) in metrics(workload) { tr {
                td { (name(case, metric)) }
                td.faint { (metric.metric.unit) }
                @for info in &peers { (median(metric, &info.name)) }
            } } }
        } }
    }
}

fn median(metric: &MetricResults, peer: &str) -> Markup {
    let median = summary::row_of(metric, peer).map(|row| row.median);
    let best = median.is_some() && median == metric.best().map(|row| row.median);
    html! {
        td.number.ours[is_ours(peer)].best[best] {
            @match median {
                Some(median) => (number(median)),
                None => { span.faint { "–" } }
            }
        }
    }
}

fn metrics(workload: &WorkloadResults) -> impl Iterator<Item = (&CaseResults, &MetricResults)> {
    workload
        .cases
        .iter()
        .flat_map(|case| case.metrics.iter().map(move |metric| (case, metric)))
}

/// Returns the metric's name within its workload.
fn name(case: &CaseResults, metric: &MetricResults) -> String {
    match case.name.as_str() {
        "" => metric.metric.name.clone(),
        case => format!("{case}: {}", metric.metric.name),
    }
}

/// A reason, and the places for which it was given.
struct Reason<'a> {
    missing: Missing<'a>,
    places: Vec<String>,
}

/// Returns the reasons for what is missing in a workload, each once.
fn reasons(workload: &WorkloadResults) -> Vec<Reason<'_>> {
    let failed = |case| summary::failed(case).map(|missing| (case.name.clone(), missing));
    let failed = workload.cases.iter().flat_map(failed);
    let skipped = metrics(workload).flat_map(|(case, metric)| {
        summary::skipped(metric).map(move |missing| (name(case, metric), missing))
    });
    let mut reasons: Vec<Reason> = Vec::new();
    for (place, missing) in failed.chain(skipped) {
        let same = |known: &&mut Reason| {
            (known.missing.peer, known.missing.why) == (missing.peer, missing.why)
        };
        match reasons.iter_mut().find(same) {
            Some(known) => known.places.push(place),
            None => reasons.push(Reason {
                missing,
                places: vec![place],
            }),
        }
    }
    reasons
}

fn failures(results: &Results, workload: &WorkloadResults) -> Markup {
    let reasons = reasons(workload);
    html! {
        @if !reasons.is_empty() {
            h3 { "Without numbers" }
            ul { @for reason in &reasons { li { (failure(results, reason)) } } }
        }
    }
}

fn failure(results: &Results, Reason { missing, places }: &Reason) -> Markup {
    let places = places.join("; ");
    html! {
        b { (results.title(missing.peer)) }
        @if !places.is_empty() { " (" (places) ")" }
        " " span.failed[missing.word == "failed"] { (missing.word) } ": "
        @if missing.why.trim().contains('\n') { pre.words { (missing.why) } } @else { span.words { (missing.why) } }
    }
}

/// Returns the exact numbers of a case.
fn table(results: &Results, case: &CaseResults) -> Markup {
    html! {
        div.scroll { table.numbers {
            caption { @if !case.name.is_empty() { b { (case.name) } " " } code { (case.parameters) } }
            thead { tr {
                th { "Metric" } th { "Peer" }
                th.number { "Median" } th.number { "Min" } th.number { "Max" } th { "Unit" } th { "All rounds" }
            } }
            @for metric in case.metrics.iter().filter(|metric| !metric.rows.is_empty()) { (rows(results, metric)) }
        } }
    }
}

fn rows(results: &Results, metric: &MetricResults) -> Markup {
    let ranked = summary::ranked(metric);
    html! {
        tbody {
            @for (i, row) in ranked.iter().enumerate() {
                tr.ours[is_ours(&row.peer)] {
                    @if i == 0 {
                        td.metric rowspan=(ranked.len()) { (metric_cell(results, metric)) }
                    }
                    (cells(results, metric, row))
                }
            }
        }
    }
}

fn metric_cell(results: &Results, metric: &MetricResults) -> Markup {
    html! {
        b { (metric.metric.name) } br;
        span.faint { (summary::direction(&metric.metric)) }
        @if let Some(verdict) = &metric.verdict {
            br; span.loss[verdict.loses] { (summary::comparison(results, metric, verdict)) }
        }
        @if let Some((goal, met)) = summary::goal_met(metric) {
            br; span.loss[!met] { "goal " (number(goal)) (if met { ": met" } else { ": missed" }) }
        }
        @if let Some(note) = &metric.note { br; span.note { (note) } }
    }
}

fn cells(results: &Results, metric: &MetricResults, row: &Row) -> Markup {
    let values: Vec<String> = row.values.iter().copied().map(number).collect();
    html! {
        td.name { (results.title(&row.peer)) }
        td.number { (number(row.median)) }
        td.number { (number(row.min)) }
        td.number { (number(row.max)) }
        td { (metric.metric.unit) }
        td.rounds {
            (values.join("  "))
            @if let Some(remark) = &row.remark { div.faint { (remark) } }
        }
    }
}
