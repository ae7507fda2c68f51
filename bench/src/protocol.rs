//! A peer's lines, as `PROTOCOL.md` has them.

use anyhow::{Context, Result};
use serde::Deserialize;
use std::fmt;

/// A line of a peer's standard output.
#[derive(Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Line {
    /// The first of all.
    Hello { peer: String, version: String },
    /// A number, and the check that the work was done.
    Number {
        metric: String,
        value: f64,
        unit: String,
        done: u64,
        due: u64,
    },
    /// A number that the peer cannot give.
    Skip { metric: String, skip: String },
    /// It stands still, to be looked at.
    At { at: String, count: u64 },
    /// A server is ready.
    Listening { listening: u16 },
    /// The round is over.
    End { end: bool },
    /// The round has failed.
    Error { error: String },
}

/// An error that a peer tells itself: that it, or the machine, cannot do what is asked for.
#[derive(Debug)]
pub struct Refusal(pub String);

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refusal {}

impl Line {
    pub fn parse(text: &str) -> Result<Line> {
        serde_json::from_str(text)
            .with_context(|| format!("it printed {text:?}, which is no line of the protocol"))
    }
}

/// What else a peer prints: how many lines, and what their numbers add up to, which tells whether
/// each of the numbers that were to come has come once.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Output {
    pub lines: u64,
    pub sum: u64,
    pub squares: u64,
    /// Lines that are no numbers.
    pub odd: u64,
}

impl Output {
    pub fn add(&mut self, line: &str) {
        self.lines += 1;
        match line.parse::<u64>() {
            Ok(number) => {
                self.sum = self.sum.wrapping_add(number);
                self.squares = self.squares.wrapping_add(number.wrapping_mul(number));
            }
            Err(_) => self.odd += 1,
        }
    }

    /// The output in which each number from 0 comes once.
    pub fn of_numbers_below(end: u64) -> Output {
        let mut output = Output::default();
        (0..end).for_each(|number| output.add(&number.to_string()));
        output
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_objects_are_refused_with_their_text() {
        let error = Line::parse(r#"{"metric":"m"}"#).unwrap_err().to_string();
        assert!(error.contains("metric"), "{error}");
    }

    #[test]
    fn output_tells_missing_doubled_and_odd_lines() {
        let printed = |lines: &[&str]| {
            let mut output = Output::default();
            lines.iter().for_each(|line| output.add(line));
            output
        };
        let expected = Output::of_numbers_below(4);
        assert_eq!(printed(&["3", "1", "0", "2"]), expected);
        for wrong in [
            &["3", "1", "0"][..],
            &["3", "3", "0", "0"],
            &["3", "1", "0", "2", "x"],
        ] {
            assert_ne!(printed(wrong), expected);
        }
    }
}
