//! Bar charts: one bar per peer, the best first.

use super::palette::{self, FAINT, GRID, INK, LOSS};
use super::plots::{Area, Drawn, WIDTH, ink, picture, style, width_of, write};
use super::scale::{Marks, Room, Scale};
use super::summary::{self, Missing};
use crate::results::{CaseResults, MetricResults, Results, Row, is_ours, number};
use plotters::chart::ChartContext;
use plotters::coord::types::RangedCoordf64;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const ROW: u32 = 24;
/// The width of the peers' names.
const LEFT: u32 = 170;
/// The width of the numbers.
const RIGHT: u32 = 100;
/// The height of the ticks and the axis' label.
const BOTTOM: u32 = 44;
/// The height of the goal's label.
const TOP: u32 = 20;
/// Letters of a name that fit beside the bars.
const NAME: usize = 23;

type Bars<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, RangedCoordf64>>;

/// Returns the chart of a metric, or `None` without values.
pub fn chart(results: &Results, case: &CaseResults, metric: &MetricResults) -> Option<String> {
    let rows: Vec<&Row> = summary::ranked(metric)
        .into_iter()
        .filter(|row| row.median.is_finite())
        .collect();
    if rows.is_empty() {
        return None;
    }
    let missing: Vec<Missing> = summary::skipped(metric)
        .chain(summary::failed(case))
        .collect();
    let goal = summary::goal_met(metric).map(|(goal, _)| goal);
    let ends = rows
        .iter()
        .flat_map(|row| [row.median, row.max])
        .chain(goal);
    let room = Room {
        pixels: (WIDTH - LEFT - RIGHT) as i32,
        of_label: |label| width_of(label) + 14,
    };
    let scale = Scale::of(&ends.collect::<Vec<_>>(), Marks::Bars, &room);
    let top = if goal.is_some() { TOP } else { 4 };
    let count = (rows.len() + missing.len()) as u32;
    let picture = picture(WIDTH, top + count * ROW + BOTTOM, |area| {
        let mut builder = ChartBuilder::on(area);
        builder.margin_top(top).margin_right(RIGHT);
        builder.set_label_area_size(LabelAreaPosition::Left, LEFT);
        builder.set_label_area_size(LabelAreaPosition::Bottom, BOTTOM);
        let mut chart = builder.build_cartesian_2d(scale.clone(), f64::from(count)..0.0)?;
        draw_axis(area, &mut chart, metric, &scale)?;
        for (i, row) in rows.iter().enumerate() {
            draw_bar(&mut chart, results, row, i)?;
        }
        if let Some(goal) = goal {
            draw_goal(area, &mut chart, goal, count)?;
        }
        // Drawn last, above all else.
        for (i, row) in rows.iter().enumerate() {
            write_row(area, &chart, results, row, i)?;
        }
        for (i, missing) in missing.iter().enumerate() {
            write_missing(area, &chart, results, missing, rows.len() + i)?;
        }
        Ok(())
    });
    Some(picture)
}

fn draw_axis(area: &Area, chart: &mut Bars, metric: &MetricResults, scale: &Scale) -> Drawn {
    let mut mesh = chart.configure_mesh();
    mesh.disable_y_mesh().disable_y_axis().y_labels(0);
    mesh.axis_style(GRID.rgb()).bold_line_style(GRID.rgb());
    mesh.x_label_style(ink(&FAINT, HPos::Center)).draw()?;
    let kind = if scale.logarithmic {
        ", logarithmic"
    } else {
        ""
    };
    let (_, height) = area.dim_in_pixel();
    let middle = (LEFT + (WIDTH - RIGHT - LEFT) / 2) as i32;
    let text = format!("{}{kind}", metric.metric.unit);
    write(
        area,
        text,
        (middle, height as i32 - 9),
        ink(&FAINT, HPos::Center),
    )
}

/// Draws the bar with its whiskers.
fn draw_bar(chart: &mut Bars, results: &Results, row: &Row, i: usize) -> Drawn {
    let (start, y) = (chart.x_range().start, i as f64);
    let strength = if is_ours(&row.peer) { 1.0 } else { 0.6 };
    let colour = palette::of_peer(results, &row.peer).mix(strength);
    chart.draw_series([Rectangle::new(
        [(start, y + 0.18), (row.median, y + 0.82)],
        colour.filled(),
    )])?;
    if row.min < row.max {
        let line = |from, to| PathElement::new([from, to], INK.rgb());
        let end = |value| line((value, y + 0.36), (value, y + 0.64));
        let whole = line((row.min, y + 0.5), (row.max, y + 0.5));
        chart.draw_series([whole, end(row.min), end(row.max)])?;
    }
    Ok(())
}

/// Writes the peer's name before its bar, and its number behind it.
fn write_row(area: &Area, chart: &Bars, results: &Results, row: &Row, i: usize) -> Drawn {
    let ours = is_ours(&row.peer);
    let (x, y) = chart.backend_coord(&(row.max, i as f64 + 0.5));
    write(
        area,
        number(row.median),
        (x + 7, y),
        style(&INK.rgb(), HPos::Left, ours),
    )?;
    let name = summary::shortened(results.title(&row.peer), NAME);
    write(
        area,
        name,
        (LEFT as i32 - 8, y),
        style(&INK.rgb(), HPos::Right, ours),
    )
}

fn write_missing(
    area: &Area,
    chart: &Bars,
    results: &Results,
    missing: &Missing,
    i: usize,
) -> Drawn {
    // A missing number of Pirn's is highlighted.
    let colour = if is_ours(missing.peer) { LOSS } else { FAINT };
    let (x, y) = chart.backend_coord(&(chart.x_range().start, i as f64 + 0.5));
    write(area, missing.word, (x + 7, y), ink(&colour, HPos::Left))?;
    let name = summary::shortened(results.title(missing.peer), NAME);
    write(area, name, (LEFT as i32 - 8, y), ink(&colour, HPos::Right))
}

fn draw_goal(area: &Area, chart: &mut Bars, goal: f64, count: u32) -> Drawn {
    let line = [(goal, 0.0), (goal, f64::from(count))];
    chart.draw_series(DashedLineSeries::new(line, 5, 4, INK.rgb().into()))?;
    let (x, _) = chart.backend_coord(&(goal, 0.0));
    write(
        area,
        format!("goal {}", number(goal)),
        (x, TOP as i32 / 2),
        ink(&INK, HPos::Center),
    )
}
