//! The settings of the diagnostics: `PIRN_DIAGNOSTICS` and `PIRN_TRACE_STUCK`. Only the operator
//! sets them, since they depend on the machine that the program runs on.

use crate::BadValue;
use crate::findings::Kind;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::ffi::OsString;

const DIAGNOSTICS: &str = "PIRN_DIAGNOSTICS";
const TRACE_STUCK: &str = "PIRN_TRACE_STUCK";

/// The variables of this file.
pub const VARIABLES: [&str; 2] = [DIAGNOSTICS, TRACE_STUCK];

/// Whether diagnostics are on by default.
static ARE_ON: AtomicBool = AtomicBool::new(true);

/// Switches off all diagnostics that the operator does not ask for: `libpirn.so` calls it, since
/// standard error belongs to the program that it is loaded into.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_diagnose_if_asked() {
    ARE_ON.store(false, Relaxed); // Relaxed: the thread that starts the runtime stores and loads it.
}

/// The limit for stuck carriers with `PIRN_TRACE_STUCK`, unless `PIRN_DIAGNOSTICS` sets one.
const TRACE_AFTER_NS: u64 = 20_000_000;

const SECOND: u64 = 1_000_000_000;

impl Kind {
    /// Returns the limit from which on this kind is reported by default: nanoseconds, or threads.
    fn limit(self) -> u64 {
        match self {
            Kind::GrowingSite => 1000,
            _ => SECOND,
        }
    }

    /// Returns whether this kind is on by default: it is hardly ever wrong, and costs too little to
    /// be measured.
    fn is_default(self) -> bool {
        self != Kind::GrowingSite
    }

    /// Returns the limit that a text says.
    fn parse(self, text: &str) -> Option<u64> {
        let (digits, factor, least, most) = match self {
            Kind::GrowingSite => (text, 1, 1, u64::from(u32::MAX)),
            _ => {
                let (digits, factor) = match text.strip_suffix("ms") {
                    Some(digits) => (digits, SECOND / 1000),
                    None => (text.strip_suffix('s')?, SECOND),
                };
                (digits, factor, 5 * SECOND / 1000, 86_400 * SECOND)
            }
        };
        let is_number = digits.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
        let value = number.checked_mul(factor)?;
        (least..=most).contains(&value).then_some(value)
    }
}

/// How much is said about a stuck carrier.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trace {
    /// One line.
    Line,
    /// And the uppermost frames of the program.
    Short,
    /// And the whole stack.
    Full,
}

/// Which diagnostics are on, and their limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    limits: Limits,
    pub trace: Trace,
}

impl Settings {
    /// Returns the limit from which on a kind is reported; `None` if it is off.
    pub fn limit(&self, kind: Kind) -> Option<u64> {
        Some(self.limits[kind as usize]).filter(|&limit| limit > 0)
    }

    /// Returns whether any diagnostic is on.
    pub fn any(&self) -> bool {
        self.limits.iter().any(|&limit| limit > 0)
    }

    /// Reads the variables.
    pub fn resolve(variable: impl Fn(&str) -> Option<OsString>) -> Result<Settings, BadValue> {
        let bad = |name, value, accepted| BadValue {
            name,
            value,
            accepted,
        };
        let trace = match variable(TRACE_STUCK) {
            None => Trace::Line,
            Some(text) => match text.to_str() {
                Some("short") => Trace::Short,
                Some("full") => Trace::Full,
                _ => return Err(bad(TRACE_STUCK, text, "short or full")),
            },
        };
        let usual = |kind: Kind| match kind {
            Kind::StuckCarrier if trace != Trace::Line => TRACE_AFTER_NS,
            kind => kind.limit(),
        };
        let mut limits = match variable(DIAGNOSTICS) {
            Some(text) => text
                .to_str()
                .and_then(|list| parse(list, usual))
                .ok_or_else(|| {
                    let accepted = "none, or a list such as stuck-carrier=200ms,pool-full of \
                                    stuck-carrier, spares-exhausted, pool-full and growing-site, \
                                    each with a limit after = or without";
                    bad(DIAGNOSTICS, text, accepted)
                })?,
            None => Kind::ALL.map(|kind| match kind.is_default() && ARE_ON.load(Relaxed) {
                true => usual(kind),
                false => 0,
            }),
        };
        let stuck = &mut limits[Kind::StuckCarrier as usize];
        if trace != Trace::Line && *stuck == 0 {
            *stuck = TRACE_AFTER_NS;
        }
        Ok(Settings { limits, trace })
    }
}

/// The limits of all kinds, by number; 0: off.
type Limits = [u64; Kind::ALL.len()];

/// Parses a list of kinds that are on, with limits; `usual` returns the limit of one without.
fn parse(list: &str, usual: impl Fn(Kind) -> u64) -> Option<Limits> {
    let mut limits = Limits::default();
    if list == "none" {
        return Some(limits);
    }
    for item in list.split(',').map(str::trim) {
        let (name, limit) = match item.split_once('=') {
            Some((name, limit)) => (name, Some(limit)),
            None => (item, None),
        };
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name)?;
        limits[kind as usize] = match limit {
            Some(limit) => kind.parse(limit)?,
            None => usual(kind),
        };
    }
    Some(limits)
}

#[cfg(test)]
mod tests;
