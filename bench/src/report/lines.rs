//! Line charts: a metric over the size of the workload, one line per peer.

use super::palette::{self, FAINT, GRID};
use super::plots::{Area, Drawn, FONT, Point, WIDTH, ink, picture, style, write};
use super::scale::{self, Marks, Room, Scale};
use super::summary;
use crate::results::{Results, Row, is_ours};
use plotters::chart::ChartContext;
use plotters::element::DashedPathElement;
use plotters::prelude::*;
use plotters::style::text_anchor::HPos;

const HEIGHT: u32 = 330;
/// The width of the numbers at the vertical axis.
const LEFT: u32 = 74;
/// The width of the peers' names.
const RIGHT: u32 = 240;
const BOTTOM: u32 = 44;
/// The height of the vertical axis' label.
const TOP: u32 = 30;
/// Letters of a name that fit beside the lines.
const NAME: usize = 32;
/// The distance from one name to the next.
const LINE: i32 = FONT + 3;

type Lines<'a, 'b> = ChartContext<'a, SVGBackend<'b>, Cartesian2d<Scale, Scale>>;

/// The values of a peer.
struct Line<'a> {
    peer: &'a str,
    points: Vec<(f64, &'a Row)>,
}

/// Returns the chart of a metric, from its points from left to right.
pub fn chart(results: &Results, points: &[Point]) -> String {
    let lines = lines(results, points);
    let values = lines
        .iter()
        .flat_map(|line| &line.points)
        .flat_map(|(_, row)| [row.median, row.min, row.max]);
    let room = Room {
        pixels: (HEIGHT - TOP - BOTTOM) as i32,
        of_label: |_| 2 * FONT,
    };
    let y = Scale::of(&values.collect::<Vec<_>>(), Marks::Points, &room);
    let x = Scale::at(&points.iter().map(|(x, ..)| *x).collect::<Vec<_>>());
    picture(WIDTH, HEIGHT, |area| {
        let mut builder = ChartBuilder::on(area);
        builder.margin_top(TOP).margin_right(RIGHT);
        builder.set_label_area_size(LabelAreaPosition::Left, LEFT);
        builder.set_label_area_size(LabelAreaPosition::Bottom, BOTTOM);
        let mut chart = builder.build_cartesian_2d(x, y.clone())?;
        draw_axes(area, &mut chart, points, &y)?;
        // Pirn's line last, above the others.
        for line in lines.iter().rev() {
            draw_line(&mut chart, results, line)?;
        }
        draw_names(area, &chart, results, &lines, points.len())
    })
}

/// Returns the lines in the order of the peers, Pirn's first.
fn lines<'a>(results: &'a Results, points: &[Point<'a>]) -> Vec<Line<'a>> {
    let line = |peer: &'a str| Line {
        peer,
        points: points
            .iter()
            .filter_map(|(x, _, metric)| Some((*x, summary::row_of(metric, peer)?)))
            .collect(),
    };
    let mut lines: Vec<Line> = results.peers.iter().map(|info| line(&info.name)).collect();
    lines.retain(|line| !line.points.is_empty());
    lines.sort_by_key(|line| !is_ours(line.peer));
    lines
}

fn draw_axes(area: &Area, chart: &mut Lines, points: &[Point], y: &Scale) -> Drawn {
    let mut mesh = chart.configure_mesh();
    mesh.axis_style(GRID.rgb()).bold_line_style(GRID.rgb());
    mesh.x_label_style(ink(&FAINT, HPos::Center));
    mesh.y_label_style(ink(&FAINT, HPos::Right)).draw()?;
    let (_, last, metric) = points[points.len() - 1];
    let kind = if y.logarithmic { ", logarithmic" } else { "" };
    let unit = format!("{}{kind}", metric.metric.unit);
    write(area, unit, (8, FONT / 2 + 2), ink(&FAINT, HPos::Left))?;
    // The case's name consists of the number and its unit.
    let what = last.name.split_once(' ').map_or("", |(_, what)| what);
    let middle = (LEFT + (WIDTH - RIGHT - LEFT) / 2) as i32;
    let at = (middle, HEIGHT as i32 - 9);
    write(
        area,
        format!("{what}, logarithmic"),
        at,
        ink(&FAINT, HPos::Center),
    )
}

fn draw_line(chart: &mut Lines, results: &Results, line: &Line) -> Drawn {
    let ours = is_ours(line.peer);
    let colour = palette::of_peer(results, line.peer);
    let (width, radius) = if ours { (4, 5) } else { (2, 3) };
    let medians = || line.points.iter().map(|(x, row)| (*x, row.median));
    chart.draw_series(LineSeries::new(medians(), colour.stroke_width(width)))?;
    chart.draw_series(medians().map(|at| Circle::new(at, radius, colour.filled())))?;
    let whisker = |(x, row): &(f64, &Row)| PathElement::new([(*x, row.min), (*x, row.max)], colour);
    chart.draw_series(line.points.iter().map(whisker))?;
    Ok(())
}

/// Draws the names beside the ends of their lines, each tied to its line.
fn draw_names(
    area: &Area,
    chart: &Lines,
    results: &Results,
    lines: &[Line],
    points: usize,
) -> Drawn {
    let end = |line: &Line| {
        let (x, row) = line.points[line.points.len() - 1];
        chart.backend_coord(&(x, row.median))
    };
    let mut order: Vec<&Line> = lines.iter().collect();
    order.sort_by_key(|line| end(line).1);
    let wanted: Vec<i32> = order.iter().map(|line| end(line).1).collect();
    let x = (WIDTH - RIGHT) as i32 + 14;
    for (line, y) in order
        .iter()
        .zip(apart(&wanted, LINE, (HEIGHT - BOTTOM) as i32))
    {
        let ours = is_ours(line.peer);
        let colour = palette::of_peer(results, line.peer);
        if line.points.len() == points {
            area.draw(&PathElement::new([end(line), (x - 3, y)], colour.mix(0.45)))?;
        } else {
            // Dotted, so that it does not look like a part of the line.
            let dots = DashedPathElement::new([end(line), (x - 3, y)], 1, 6, colour);
            area.draw(&dots)?;
        }
        area.draw(&Circle::new((x + 2, y), 4, colour.filled()))?;
        let name = name(results, line, points);
        write(
            area,
            name,
            (x + 10, y),
            style(&palette::INK.rgb(), HPos::Left, ours),
        )?;
    }
    Ok(())
}

/// Returns the peer's name, and where its line ends if that is before the others'.
fn name(results: &Results, line: &Line, points: usize) -> String {
    let title = results.title(line.peer);
    if line.points.len() == points {
        return summary::shortened(title, NAME);
    }
    let last = scale::label(line.points[line.points.len() - 1].0);
    let end = format!(", to {last}");
    summary::shortened(title, NAME - end.len()) + &end
}

/// Returns the places in ascending order, moved as little as needed to be `gap` apart and not below
/// `lowest`.
fn apart(wanted: &[i32], gap: i32, lowest: i32) -> Vec<i32> {
    let mut places = wanted.to_vec();
    for i in 1..places.len() {
        places[i] = places[i].max(places[i - 1] + gap);
    }
    let mut limit = lowest;
    for place in places.iter_mut().rev() {
        *place = (*place).min(limit);
        limit = *place - gap;
    }
    places
}

#[cfg(test)]
mod tests;
