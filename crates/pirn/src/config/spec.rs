//! The settings one by one: their names, bounds and units.

use super::ConfigError;
use pirn_rt::stack::{LARGEST_STACK, SMALLEST_STACK};
use std::ffi::OsString;

// The indices of the settings in the arrays of `config`.
pub(super) const PARALLELISM: usize = 0;
pub(super) const STACK_SIZE: usize = 1;
pub(super) const MAX_BLOCKING_THREADS: usize = 2;
pub(super) const SPARE_CARRIERS: usize = 3;
pub(super) const SPIN: usize = 4;
pub(super) const TLS_RESERVE: usize = 5;
pub(super) const SLICE: usize = 6;
pub(super) const OBSERVE: usize = 7;
pub(super) const SIGQUIT: usize = 8;
pub(super) const SETTINGS: usize = 9;

pub(super) const KIB: usize = 1024;
pub(super) const MIB: usize = 1024 * KIB;
const GIB: usize = 1024 * MIB;

/// How the value of a variable is written.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Notation {
    Number,
    /// Bytes, with suffixes for more.
    Size,
    /// A size, or a range of two, as `256K..2M`.
    Sizes,
    /// Milliseconds, or microseconds with a suffix; the value is in microseconds.
    Time,
    /// `on` or `off`; the value is 1 or 0.
    Switch,
}

/// The properties of a setting, apart from its value.
pub(super) struct Spec {
    pub(super) setting: &'static str,
    pub(super) variable: &'static str,
    least: usize,
    pub(super) most: usize,
    /// The bounds in words.
    accepted: &'static str,
    /// How its variable is written.
    notation: Notation,
}

const fn spec(
    [setting, variable]: [&'static str; 2],
    [least, most]: [usize; 2],
    notation: Notation,
    accepted: &'static str,
) -> Spec {
    Spec {
        setting,
        variable,
        least,
        most,
        accepted,
        notation,
    }
}

#[rustfmt::skip]
pub(super) const SPECS: [Spec; SETTINGS] = [
    spec(["parallelism", "PIRN_PARALLELISM"], [1, 1024], Notation::Number, "1 to 1024 carriers"),
    spec(["stack_size", "PIRN_STACK_SIZE"], [SMALLEST_STACK, LARGEST_STACK], Notation::Sizes,
        "16 KiB to 1 GiB, in bytes; in the variable also with K, M or G (or KiB, MiB, GiB), or a \
         range such as 256K..2M"),
    spec(["max_blocking_threads", "PIRN_MAX_BLOCKING_THREADS"], [1, 65536], Notation::Number,
        "1 to 65536 platform threads"),
    spec(["spare_carriers", "PIRN_SPARE_CARRIERS"], [0, 1024], Notation::Number,
        "0 to 1024 carriers"),
    spec(["spin", "PIRN_SPIN_US"], [0, 10_000], Notation::Number, "0 to 10000 microseconds"),
    spec(["tls_reserve", "PIRN_TLS_RESERVE"], [64, 8 * KIB], Notation::Size,
        "64 bytes to 8 KiB, in bytes; in the variable also with K (or KiB)"),
    spec(["time_slice", "PIRN_PREEMPT"], [0, 1_000_000], Notation::Time,
        "0, for none, to 1000 milliseconds; in the variable also microseconds, as in 100us"),
    spec(["observe", "PIRN_OBSERVE"], [0, 1], Notation::Number,
        "0: never, 1: from the start; unset: when a tool asks"),
    spec(["dump_on_sigquit", "PIRN_SIGQUIT"], [0, 1], Notation::Switch, "on, off"),
];

impl Spec {
    fn in_bounds(&self, value: usize) -> bool {
        (self.least..=self.most).contains(&value)
    }

    /// Checks a value that the program sets.
    pub(super) fn check(&self, value: usize) -> Result<(), ConfigError> {
        if self.in_bounds(value) {
            return Ok(());
        }
        let (name, accepted) = (self.setting, self.accepted);
        Err(ConfigError::BadValue {
            name,
            value: value.to_string(),
            accepted,
        })
    }

    /// Parses the value of the variable. Returns the least and the most of a range; of anything
    /// else, the same value twice.
    pub(super) fn parse(&self, text: OsString) -> Result<(usize, usize), ConfigError> {
        let number = |text| {
            let value = match self.notation {
                Notation::Number => parse_number(text),
                Notation::Size | Notation::Sizes => parse_size(text),
                Notation::Time => parse_time(text),
                Notation::Switch => parse_switch(text),
            };
            value.filter(|&value| self.in_bounds(value))
        };
        let value = text
            .to_str()
            .and_then(|text| match text.split_once("..") {
                Some((least, most)) if self.notation == Notation::Sizes => {
                    Some((number(least)?, number(most)?))
                }
                _ => number(text).map(|value| (value, value)),
            })
            .filter(|(least, most)| least <= most);
        let (name, accepted) = (self.variable, self.accepted);
        value.ok_or_else(|| ConfigError::BadValue {
            name,
            value: format!("{text:?}"),
            accepted,
        })
    }
}

fn parse_number(text: &str) -> Option<usize> {
    // `parse` would accept a plus sign as well.
    let digits = text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Parses a number of bytes, with a suffix for more.
pub(crate) fn parse_size(text: &str) -> Option<usize> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let unit = match &text[digits.len()..] {
        "" => 1,
        "K" | "KiB" => KIB,
        "M" | "MiB" => MIB,
        "G" | "GiB" => GIB,
        _ => return None,
    };
    parse_number(digits)?.checked_mul(unit)
}

fn parse_switch(text: &str) -> Option<usize> {
    match text {
        "on" => Some(1),
        "off" => Some(0),
        _ => None,
    }
}

fn parse_time(text: &str) -> Option<usize> {
    match text.strip_suffix("us") {
        Some(micros) => parse_number(micros),
        None => parse_number(text)?.checked_mul(1000),
    }
}
