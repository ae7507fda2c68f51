//! Axes: their range, whether they are logarithmic, and their ticks.

use crate::results::number;
use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use plotters::coord::types::RangedCoordf64;
use std::ops::Range;

/// Values that reach over more than this need a logarithmic axis.
const WIDE: f64 = 30.0;

/// The kind of marks along an axis.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Marks {
    /// They begin at the start of the axis, and the longest ends at its end.
    Bars,
    /// They lie anywhere between its ends.
    Points,
}

/// The room for labels along an axis.
pub struct Room {
    pub pixels: i32,
    /// The part of it that a label takes.
    pub of_label: fn(&str) -> i32,
}

/// An axis.
#[derive(Clone)]
pub struct Scale {
    range: Range<f64>,
    pub logarithmic: bool,
    ticks: Vec<f64>,
}

impl Scale {
    /// Returns an axis for these values, linear from 0 if they are not too far apart, with as many
    /// ticks as there is room for.
    pub fn of(values: &[f64], marks: Marks, room: &Room) -> Scale {
        let values = values.iter().copied().filter(|value| value.is_finite());
        let positive: Vec<f64> = values.clone().filter(|&value| value > 0.0).collect();
        let least = positive.iter().copied().fold(f64::INFINITY, f64::min);
        let most = positive.iter().copied().fold(0.0, f64::max);
        // A point at 0 has no place on a logarithmic axis; a bar of no length has.
        let zero = marks == Marks::Points && values.clone().any(|value| value <= 0.0);
        if most > WIDE * least && !zero {
            let range = match marks {
                Marks::Bars => 10f64.powf((0.6 * least).log10().floor())..most,
                Marks::Points => round_down(least)..round_up(most),
            };
            return Scale::logarithmic(range, room);
        }
        let most = if most > 0.0 { most } else { 1.0 };
        let range = 0.0..match marks {
            Marks::Bars => most,
            Marks::Points => 1.05 * most,
        };
        let candidates = linear_ticks(range.end);
        Scale::without_ticks(range, false).with_those_that_fit(candidates, room)
    }

    /// Returns a logarithmic axis from one value above 0 to another.
    pub fn logarithmic(range: Range<f64>, room: &Room) -> Scale {
        let candidates = logarithmic_ticks(&range);
        Scale::without_ticks(range, true).with_those_that_fit(candidates, room)
    }

    /// Returns a logarithmic axis with ticks at these values only, which are ascending and above 0.
    pub fn at(values: &[f64]) -> Scale {
        let (first, last) = (values[0], values[values.len() - 1]);
        // Some space on both sides.
        let air = (last / first).powf(0.04);
        Scale {
            ticks: values.to_vec(),
            ..Scale::without_ticks(first / air..last * air, true)
        }
    }

    fn without_ticks(range: Range<f64>, logarithmic: bool) -> Scale {
        Scale {
            range,
            logarithmic,
            ticks: vec![],
        }
    }

    /// Takes the first of the candidates whose labels do not touch, or else the last, which has one
    /// or two ticks.
    fn with_those_that_fit(mut self, mut candidates: Vec<Vec<f64>>, room: &Room) -> Scale {
        let fits = |ticks: &Vec<f64>| {
            let places = ticks.iter().map(|tick| {
                (
                    self.map(tick, (0, room.pixels)),
                    (room.of_label)(&label(*tick)),
                )
            });
            let places: Vec<(i32, i32)> = places.collect();
            places
                .windows(2)
                .all(|pair| pair[1].0 - pair[0].0 > (pair[0].1 + pair[1].1) / 2)
        };
        let found = candidates
            .iter()
            .position(fits)
            .unwrap_or(candidates.len().saturating_sub(1));
        self.ticks = if candidates.is_empty() {
            vec![]
        } else {
            candidates.swap_remove(found)
        };
        self
    }

    fn place(&self, value: f64) -> f64 {
        let value = value.clamp(self.range.start, self.range.end);
        if self.logarithmic { value.ln() } else { value }
    }
}

impl Ranged for Scale {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        let places = self.place(self.range.start)..self.place(self.range.end);
        RangedCoordf64::from(places).map(&self.place(*value), limit)
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        // There are no light lines between the ticks.
        if hint.weight().allow_light_points() {
            vec![]
        } else {
            self.ticks.clone()
        }
    }

    fn range(&self) -> Range<f64> {
        self.range.clone()
    }
}

impl ValueFormatter<f64> for Scale {
    fn format(value: &f64) -> String {
        label(*value)
    }
}

/// Returns the label of a tick: no more digits than it has.
pub fn label(value: f64) -> String {
    if value == 0.0 || value >= 1000.0 {
        return number(value);
    }
    let decimals = (2.0 - value.log10().floor()).max(0.0) as usize;
    let text = format!("{value:.decimals$}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// 1, 2 and 5 times a power of ten.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// Returns all round numbers from a power of ten below `least` to one above `most`.
fn round_numbers(least: f64, most: f64) -> impl Iterator<Item = f64> {
    let powers = least.log10().floor() as i32..=most.log10().ceil() as i32;
    powers.flat_map(|power| STEPS.map(|step| step * 10f64.powi(power)))
}

fn round_down(value: f64) -> f64 {
    let below = round_numbers(value, value).filter(|&round| round <= value);
    below.last().unwrap_or(value)
}

fn round_up(value: f64) -> f64 {
    round_numbers(value, value)
        .find(|&round| round >= value)
        .unwrap_or(value)
}

/// Returns sets of ticks from the densest to the sparsest.
fn linear_ticks(end: f64) -> Vec<Vec<f64>> {
    let steps = round_numbers(end / 10.0, end);
    let ticks = |step: f64| {
        (0..=(end / step) as u32)
            .map(|i| step * f64::from(i))
            .collect()
    };
    steps
        .filter(|&step| step >= end / 10.0)
        .map(ticks)
        .collect()
}

/// Returns sets of ticks from the densest to the sparsest.
fn logarithmic_ticks(range: &Range<f64>) -> Vec<Vec<f64>> {
    let inside = |tick: &f64| range.contains(tick) || *tick == range.end;
    let all = || round_numbers(range.start, range.end).filter(inside);
    let power = |tick: f64| tick.log10().round() as i32;
    let is_power = |tick: &f64| (tick / 10f64.powi(power(*tick)) - 1.0).abs() < 1e-9;
    let every = |n: i32| {
        all()
            .filter(is_power)
            .filter(|&tick| power(tick) % n == 0)
            .collect()
    };
    let mut candidates = vec![all().collect()];
    candidates.extend((1..10).map(every));
    candidates
}

#[cfg(test)]
mod tests;
