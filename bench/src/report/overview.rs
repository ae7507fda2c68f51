//! The overview: Pirn against the best of the others in every metric.

use super::palette::{BAND, Colour, FAINT, GRID, INK, LOSS, OURS};
use super::plots::{Area, Drawn, ink, picture, width_of, write};
use super::scale::{Room, Scale};
use super::summary::{self, Outcome};
use crate::catalog::Better;
use crate::results::{CaseResults, MetricResults, Results, Verdict, WorkloadResults};
use plotters::chart::ChartContext;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const WIDTH: u32 = 1120;
const ROW: u32 = 19;
/// The width of the metrics' names.
const LEFT: u32 = 370;
/// The width of the ratio and the best of the others.
const RIGHT: u32 = 240;
const BOTTOM: u32 = 24;
/// The height of the ticks and the names of the sides.
const TOP: u32 = 48;
const SIDES: u32 = 24;
/// Values further from 1 than this are drawn at the end of the axis.
const FURTHEST: f64 = 1e4;

type Entry<'a> = (
    &'a WorkloadResults,
    &'a CaseResults,
    &'a MetricResults,
    &'a Verdict,
);
type Dots<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, RangedCoordf64>>;

/// Returns the chart, or `None` without a comparison.
pub fn chart(results: &Results) -> Option<String> {
    let compared = results
        .metrics()
        .filter_map(|(w, c, m)| Some((w, c, m, m.verdict.as_ref()?)));
    let entries: Vec<Entry> = compared.collect();
    if entries.is_empty() {
        return None;
    }
    let scale = scale(&entries);
    let count = entries.len() as u32;
    Some(picture(WIDTH, TOP + count * ROW + BOTTOM, |area| {
        let mut builder = ChartBuilder::on(area);
        builder.margin_top(SIDES).margin_right(RIGHT);
        builder.set_label_area_size(LabelAreaPosition::Top, TOP - SIDES);
        builder.set_label_area_size(LabelAreaPosition::Left, LEFT);
        builder.set_label_area_size(LabelAreaPosition::Bottom, BOTTOM);
        let bands = bands(&entries);
        for (from, to) in bands {
            let y = |row: usize| (TOP + row as u32 * ROW) as i32;
            area.draw(&Rectangle::new(
                [(0, y(from)), (WIDTH as i32, y(to))],
                BAND.rgb().filled(),
            ))?;
        }
        let mut chart = builder.build_cartesian_2d(scale, f64::from(count)..0.0)?;
        draw_axis(area, &mut chart, count)?;
        for (i, entry) in entries.iter().enumerate() {
            draw_entry(area, &mut chart, results, entry, i)?;
        }
        Ok(())
    }))
}

/// Returns an axis with 1 on it for all values that are not too far from it.
fn scale(entries: &[Entry]) -> Scale {
    let ends = entries
        .iter()
        .flat_map(|(_, _, metric, v)| [v.median, v.min, v.max].map(|r| summary::turned(metric, r)));
    let near = ends.filter(|ratio| (1.0 / FURTHEST..=FURTHEST).contains(ratio));
    let (least, most) = near.fold((0.5f64, 2.0f64), |(least, most), ratio| {
        (least.min(ratio), most.max(ratio))
    });
    let room = Room {
        pixels: (WIDTH - LEFT - RIGHT) as i32,
        of_label: |label| width_of(label) + 14,
    };
    Scale::logarithmic(0.9 * least..1.1 * most, &room)
}

/// Returns the rows of every other workload, as first and last.
fn bands(entries: &[Entry]) -> Vec<(usize, usize)> {
    let mut from = 0;
    let workloads = entries.chunk_by(|a, b| a.0.name == b.0.name).map(|rows| {
        from += rows.len();
        (from - rows.len(), from)
    });
    workloads.step_by(2).collect()
}

fn draw_axis(area: &Area, chart: &mut Dots, count: u32) -> Drawn {
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().disable_y_axis().y_labels(0);
    mesh.axis_style(GRID.rgb()).bold_line_style(GRID.rgb());
    mesh.x_label_style(ink(&FAINT, HPos::Center)).draw()?;
    let middle = [(1.0, 0.0), (1.0, f64::from(count))];
    chart.draw_series([PathElement::new(middle, INK.rgb().stroke_width(2))])?;
    let (x, _) = chart.backend_coord(&(1.0, 0.0));
    let y = SIDES as i32 / 2;
    write(
        area,
        "← Pirn is better",
        (x - 10, y),
        ink(&OURS, HPos::Right),
    )?;
    write(area, "Pirn is worse →", (x + 10, y), ink(&LOSS, HPos::Left))
}

fn draw_entry(area: &Area, chart: &mut Dots, results: &Results, entry: &Entry, i: usize) -> Drawn {
    let (workload, case, metric, verdict) = *entry;
    let y = i as f64 + 0.5;
    let colour = colour(metric).rgb();
    let place = |ratio| (summary::turned(metric, ratio), y);
    chart.draw_series([PathElement::new(
        [(1.0, y), place(verdict.median)],
        colour.mix(0.35).stroke_width(1),
    )])?;
    chart.draw_series([PathElement::new(
        [place(verdict.min), place(verdict.max)],
        colour.stroke_width(2),
    )])?;
    chart.draw_series([Circle::new(place(verdict.median), 5, colour.filled())])?;
    let (_, y) = chart.backend_coord(&(1.0, y));
    let arrow = if metric.metric.better == Better::Higher {
        " ↑"
    } else {
        ""
    };
    let label = summary::shortened(&summary::label(workload, case, metric), 50) + arrow;
    write(area, label, (LEFT as i32 - 10, y), ink(&INK, HPos::Right))?;
    let best = summary::shortened(results.title(&verdict.best), 22);
    let text = format!("{} × {best}", summary::ratio(verdict.median));
    write(
        area,
        text,
        ((WIDTH - RIGHT) as i32 + 10, y),
        ink(colour_of_text(metric), HPos::Left),
    )
}

fn colour(metric: &MetricResults) -> &'static Colour {
    match summary::outcome(metric) {
        Some(Outcome::Win) => &OURS,
        Some(Outcome::Loss) => &LOSS,
        Some(Outcome::Draw) | None => &FAINT,
    }
}

/// Returns the colour of a text: only losses stand out.
fn colour_of_text(metric: &MetricResults) -> &'static Colour {
    match summary::outcome(metric) {
        Some(Outcome::Loss) => &LOSS,
        _ => &INK,
    }
}
