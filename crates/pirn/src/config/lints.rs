//! The settings of the lints: `PIRN_LINTS` and `PIRN_TRACE_STUCK`. The operator's alone, as they
//! are about how the program runs on a machine.

use super::ConfigError;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::ffi::OsString;

pub(super) const LINTS: &str = "PIRN_LINTS";
pub(super) const TRACE_STUCK: &str = "PIRN_TRACE_STUCK";

/// The variables of this file.
pub(super) const VARIABLES: [&str; 2] = [LINTS, TRACE_STUCK];

/// Whether lints are on by default.
static ARE_ON: AtomicBool = AtomicBool::new(true);

/// Switches all lints off that the operator does not ask for. For programs that know nothing of
/// this library: their standard error is theirs.
#[unsafe(no_mangle)]
#[doc(hidden)]
pub extern "C" fn pirn_lint_if_asked() {
    ARE_ON.store(false, Relaxed); // Relaxed: before the runtime starts, by the thread that starts it.
}

/// Returns what a variable of this file counts as when it is not set.
pub(super) fn by_default(name: &str) -> Option<OsString> {
    // Relaxed: as above.
    (name == LINTS && !ARE_ON.load(Relaxed)).then(|| "none".into())
}

/// How long a carrier is stuck before `PIRN_TRACE_STUCK` reports it, unless `PIRN_LINTS` says so.
const TRACE_AFTER_NS: u64 = 20_000_000;

/// Something that is no error, but that the operator probably wants to know.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Lint {
    StuckCarrier,
    SparesExhausted,
    PoolFull,
    CrowdedLock,
    LongRunnable,
    DeepStack,
    DeafMember,
    FewDescriptors,
    GrowingPlace,
    DroppedEvents,
}

/// The properties of a lint.
pub(crate) struct Kind {
    pub(crate) lint: Lint,
    pub(crate) name: &'static str,
    unit: Unit,
    /// From where on it is reported, unless set: nanoseconds, percent or a number.
    limit: u64,
    /// Whether it is on unless set: hardly ever wrong, and no cost that can be measured.
    default: bool,
}

/// What the limit of a lint is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Unit {
    Time,
    Percent,
    Number,
}

const SECOND: u64 = 1_000_000_000;

/// All lints, in the order of their numbers.
pub(crate) const KINDS: [Kind; 10] = [
    kind(
        Lint::StuckCarrier,
        "stuck-carrier",
        Unit::Time,
        SECOND,
        true,
    ),
    kind(
        Lint::SparesExhausted,
        "spares-exhausted",
        Unit::Time,
        SECOND,
        true,
    ),
    kind(Lint::PoolFull, "pool-full", Unit::Time, SECOND, true),
    kind(Lint::CrowdedLock, "crowded-lock", Unit::Number, 1000, false),
    kind(
        Lint::LongRunnable,
        "long-runnable",
        Unit::Time,
        SECOND / 10,
        false,
    ),
    kind(Lint::DeepStack, "deep-stack", Unit::Percent, 80, true),
    kind(
        Lint::DeafMember,
        "deaf-member",
        Unit::Time,
        10 * SECOND,
        true,
    ),
    kind(
        Lint::FewDescriptors,
        "few-descriptors",
        Unit::Percent,
        90,
        true,
    ),
    kind(
        Lint::GrowingPlace,
        "growing-place",
        Unit::Number,
        1000,
        false,
    ),
    kind(Lint::DroppedEvents, "dropped-events", Unit::Number, 1, true),
];

const fn kind(lint: Lint, name: &'static str, unit: Unit, limit: u64, default: bool) -> Kind {
    Kind {
        lint,
        name,
        unit,
        limit,
        default,
    }
}

impl Lint {
    /// Returns its properties.
    pub(crate) fn kind(self) -> &'static Kind {
        &KINDS[self as usize]
    }
}

/// How much is said about a carrier that is stuck.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Trace {
    /// One line.
    Line,
    /// The uppermost frames of the program as well.
    Short,
    /// The whole stack as well.
    Full,
}

/// Which lints are on, and their limits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Lints {
    /// By number; 0: off.
    limits: [u64; KINDS.len()],
    pub(crate) trace: Trace,
}

impl Lints {
    /// Returns from where on a lint is reported; `None` if it is off.
    pub(crate) fn limit(&self, lint: Lint) -> Option<u64> {
        Some(self.limits[lint as usize]).filter(|&limit| limit > 0)
    }

    /// Returns whether any lint is on.
    pub(crate) fn any(&self) -> bool {
        self.limits.iter().any(|&limit| limit > 0)
    }

    fn set(&mut self, on: impl Fn(&Kind) -> bool) {
        self.limits = KINDS.map(|kind| if on(&kind) { kind.limit } else { 0 });
    }

    /// Reads the variables.
    pub(super) fn resolve(
        variable: impl Fn(&str) -> Option<OsString>,
    ) -> Result<Lints, ConfigError> {
        let mut lints = Lints {
            limits: [0; KINDS.len()],
            trace: Trace::Line,
        };
        lints.set(|kind| kind.default);
        let mut stuck_is_set = false;
        if let Some(text) = variable(LINTS) {
            lints.limits = [0; KINDS.len()];
            let items = text.to_str().and_then(|text| lints.apply(text));
            stuck_is_set = items.ok_or_else(|| bad(LINTS, &text, ACCEPTED))?;
        }
        let Some(text) = variable(TRACE_STUCK) else {
            return Ok(lints);
        };
        let stuck = &mut lints.limits[Lint::StuckCarrier as usize];
        let after = if stuck_is_set { *stuck } else { TRACE_AFTER_NS };
        (*stuck, lints.trace) = match text.to_str() {
            Some("off") => (0, Trace::Line),
            Some("short") => (after, Trace::Short),
            Some("full") => (after, Trace::Full),
            _ => return Err(bad(TRACE_STUCK, &text, "off, short or full")),
        };
        Ok(lints)
    }

    /// Applies the items of a list, one after the other. Returns whether one of them has set the
    /// limit for carriers that are stuck.
    fn apply(&mut self, list: &str) -> Option<bool> {
        let mut stuck_is_set = false;
        for item in list.split(',').map(str::trim) {
            match item {
                "all" => self.set(|_| true),
                "default" => self.set(|kind| kind.default),
                "none" => self.set(|_| false),
                _ => {
                    let (name, limit) = match item.split_once('=') {
                        Some((name, limit)) => (name, Some(limit)),
                        None => (item, None),
                    };
                    let off = limit.is_none().then(|| name.strip_prefix('-')).flatten();
                    let name = off.unwrap_or(name);
                    let kind = KINDS.iter().find(|kind| kind.name == name)?;
                    let value = match limit {
                        _ if off.is_some() => 0,
                        None => kind.limit,
                        Some(limit) => kind.parse(limit)?,
                    };
                    stuck_is_set |= limit.is_some() && kind.lint == Lint::StuckCarrier;
                    self.limits[kind.lint as usize] = value;
                }
            }
        }
        Some(stuck_is_set)
    }
}

const ACCEPTED: &str = "a list such as default,long-runnable=200ms,-deep-stack of: all, default, \
                        none, and lints, each with a limit after = or a minus before it; \
                        docs/settings.md has them all";

fn bad(name: &'static str, value: &OsString, accepted: &'static str) -> ConfigError {
    ConfigError::BadValue {
        name,
        value: format!("{value:?}"),
        accepted,
    }
}

impl Kind {
    fn parse(&self, text: &str) -> Option<u64> {
        let (digits, factor, least, most) = match self.unit {
            Unit::Time => {
                let (digits, factor) = match text.strip_suffix("ms") {
                    Some(digits) => (digits, SECOND / 1000),
                    None => (text.strip_suffix('s')?, SECOND),
                };
                (digits, factor, 5 * SECOND / 1000, 86_400 * SECOND)
            }
            Unit::Percent => (text.strip_suffix('%').unwrap_or(text), 1, 1, 99),
            Unit::Number => (text, 1, 1, u64::from(u32::MAX)),
        };
        let is_number = digits.bytes().all(|b| b.is_ascii_digit());
        let number: u64 = is_number.then(|| digits.parse().ok()).flatten()?;
        let value = number.checked_mul(factor)?;
        (least..=most).contains(&value).then_some(value)
    }
}

#[cfg(test)]
mod tests;
