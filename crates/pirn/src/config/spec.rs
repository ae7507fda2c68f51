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
pub(super) const SWAP_COLD: usize = 7;
pub(super) const OBSERVE: usize = 8;
pub(super) const SIGQUIT: usize = 9;
pub(super) const SETTINGS: usize = 10;

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

pub(super) const SPECS: [Spec; SETTINGS] = [
    Spec {
        setting: "parallelism",
        variable: "PIRN_PARALLELISM",
        least: 1,
        most: 1024,
        accepted: "1 to 1024 carriers",
        notation: Notation::Number,
    },
    Spec {
        setting: "stack_size",
        variable: "PIRN_STACK_SIZE",
        least: SMALLEST_STACK,
        most: LARGEST_STACK,
        accepted: "16 KiB to 1 GiB, in bytes; in the variable also with K, M or G (or KiB, MiB, GiB), \
                   or a range as 256K..2M",
        notation: Notation::Sizes,
    },
    Spec {
        setting: "max_blocking_threads",
        variable: "PIRN_MAX_BLOCKING_THREADS",
        least: 1,
        most: 65536,
        accepted: "1 to 65536 platform threads",
        notation: Notation::Number,
    },
    Spec {
        setting: "spare_carriers",
        variable: "PIRN_SPARE_CARRIERS",
        least: 0,
        most: 1024,
        accepted: "0 to 1024 carriers",
        notation: Notation::Number,
    },
    Spec {
        setting: "spin",
        variable: "PIRN_SPIN_US",
        least: 0,
        most: 10_000,
        accepted: "0 to 10000 microseconds",
        notation: Notation::Number,
    },
    Spec {
        setting: "tls_reserve",
        variable: "PIRN_TLS_RESERVE",
        least: 64,
        most: 8 * KIB,
        accepted: "64 bytes to 8 KiB, in bytes; in the variable also with K (or KiB)",
        notation: Notation::Size,
    },
    Spec {
        setting: "time_slice",
        variable: "PIRN_PREEMPT",
        least: 0,
        most: 1_000_000,
        accepted: "0, for none, to 1000 milliseconds; in the variable also microseconds, as in 100us",
        notation: Notation::Time,
    },
    Spec {
        setting: "swap_cold",
        variable: "PIRN_SWAP_COLD",
        least: 0,
        most: 86_400,
        accepted: "0, for never, to 86400 seconds",
        notation: Notation::Number,
    },
    Spec {
        setting: "observe",
        variable: "PIRN_OBSERVE",
        least: 0,
        most: 1,
        accepted: "0: never, 1: from the start; unset: when a tool asks",
        notation: Notation::Number,
    },
    Spec {
        setting: "dump_on_sigquit",
        variable: "PIRN_SIGQUIT",
        least: 0,
        most: 1,
        accepted: "on, off",
        notation: Notation::Switch,
    },
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
