//! The charts of a workload, and the common code of all charts.

use super::palette::Colour;
use super::{bars, lines, summary};
use crate::catalog::Metric;
use crate::results::{CaseResults, MetricResults, Results, WorkloadResults};
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use std::io;

/// A picture with its title.
pub struct Chart {
    /// `10,000 threads: bytes, B/thread`.
    pub title: String,
    /// `lower is better`.
    pub remark: &'static str,
    pub svg: String,
}

/// A point of a curve: its place, its case, and the metric's values there.
pub type Point<'a> = (f64, &'a CaseResults, &'a MetricResults);

pub type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub type Drawn = Result<(), DrawingAreaErrorKind<io::Error>>;

/// The width of all charts but the overview.
pub const WIDTH: u32 = 560;
/// The size of letters.
pub const FONT: i32 = 13;

/// Returns the charts of a workload: a curve for each metric with several points, bars for all
/// others.
pub fn charts(results: &Results, workload: &WorkloadResults) -> Vec<Chart> {
    let mut charts = Vec::new();
    let mut drawn: Vec<&str> = Vec::new();
    for case in &workload.cases {
        for metric in &case.metrics {
            let name = metric.metric.name.as_str();
            let points = points(workload, name);
            if case.x.is_none() || points.len() < 2 {
                let svg = bars::chart(results, case, metric);
                charts.extend(svg.map(|svg| chart(&case.name, &metric.metric, svg)));
            } else if !drawn.contains(&name) {
                drawn.push(name);
                charts.push(chart("", &metric.metric, lines::chart(results, &points)));
            }
        }
    }
    charts
}

fn chart(case: &str, metric: &Metric, svg: String) -> Chart {
    let separator = if case.is_empty() { "" } else { ": " };
    Chart {
        title: format!("{case}{separator}{}, {}", metric.name, metric.unit),
        remark: summary::direction(metric),
        svg,
    }
}

/// Returns the cases of a workload that lie on the axis and have values of this metric, from left
/// to right.
fn points<'a>(workload: &'a WorkloadResults, metric: &str) -> Vec<Point<'a>> {
    let point = |case: &'a CaseResults| {
        let found = case
            .metrics
            .iter()
            .find(|m| m.metric.name == metric && !m.rows.is_empty())?;
        Some((case.x?, case, found))
    };
    let mut points: Vec<Point> = workload.cases.iter().filter_map(point).collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Returns a picture of this size.
pub fn picture(width: u32, height: u32, draw: impl FnOnce(&Area) -> Drawn) -> String {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (width, height)).into_drawing_area();
    draw(&area)
        .and_then(|()| area.present())
        .expect("a string takes all that is drawn");
    drop(area);
    svg
}

/// Returns the style of a text with this colour that ends, begins, or has its middle at a place, at
/// half its height.
pub fn style(colour: &impl Color, anchor: HPos, bold: bool) -> TextStyle<'static> {
    // The library draws letters smaller than requested by this factor.
    let size = f64::from(FONT) * 1.24;
    let weight = if bold {
        FontStyle::Bold
    } else {
        FontStyle::Normal
    };
    TextStyle {
        font: FontDesc::new(FontFamily::SansSerif, size, weight),
        color: colour.to_backend_color(),
        pos: Pos::new(anchor, VPos::Center),
    }
}

pub fn ink(colour: &Colour, anchor: HPos) -> TextStyle<'static> {
    style(&colour.rgb(), anchor, false)
}

/// Writes text at a place of the picture.
pub fn write(
    area: &Area,
    text: impl Into<String>,
    at: (i32, i32),
    style: TextStyle<'static>,
) -> Drawn {
    area.draw(&Text::new(text.into(), at, style))
}

/// Returns the pixels that a text takes, rounded up generously: the font is the reader's.
pub fn width_of(text: &str) -> i32 {
    text.chars().count() as i32 * FONT * 6 / 10
}

#[cfg(test)]
mod tests;
