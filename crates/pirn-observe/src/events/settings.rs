//! `PIRN_EVENTS`: how much is kept, and when it is written by itself.
//!
//! ```text
//!   PIRN_EVENTS=1M,stuck=100ms,latency=50ms,panic,folder=/var/tmp
//! ```

use crate::BadValue;
use pirn_rt::environment;
use pirn_rt::recorder::LEAST_BYTES;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::time::Duration;

/// The variable.
pub const VARIABLE: &str = "PIRN_EVENTS";
const ACCEPTED: &str = "0, for none, or 16K to 1G, the memory per carrier; then, if wanted, \
                        stuck=100ms, latency=50ms, panic, folder=PATH, separated by commas";

/// The memory of a carrier's ring if nobody says otherwise: 65,536 slots.
pub const DEFAULT_BYTES: usize = 1 << 20;
const MOST_BYTES: usize = 1 << 30;

/// When the recorder writes what it has by itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// A thread keeps its carrier for longer than this.
    pub stuck: Option<Duration>,
    /// A thread is runnable for longer than this before it runs.
    pub latency: Option<Duration>,
    /// A thread panics.
    pub panic: bool,
}

/// What the recorder keeps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The memory of each carrier's ring; 0: nothing is kept.
    pub bytes: usize,
    pub rules: Rules,
    /// Where files are written; by default the folder for temporary ones.
    pub folder: Option<PathBuf>,
}

/// Reads the variable. `size` parses a number of bytes.
///
/// # Errors
/// Its value is not as the table of settings says.
pub fn from_environment(size: fn(&str) -> Option<usize>) -> Result<Option<Keep>, BadValue> {
    let Some(value) = environment::variable(VARIABLE) else {
        return Ok(None);
    };
    match parse(&value, size) {
        Some(keep) => Ok(Some(keep)),
        None => Err(BadValue {
            name: VARIABLE,
            value,
            accepted: ACCEPTED,
        }),
    }
}

fn parse(value: &OsStr, size: fn(&str) -> Option<usize>) -> Option<Keep> {
    let mut parts = value.as_bytes().split(|byte| *byte == b',');
    let bytes = size(str::from_utf8(parts.next()?).ok()?)?;
    let is_accepted = bytes == 0 || (LEAST_BYTES..=MOST_BYTES).contains(&bytes);
    let mut keep = Keep {
        bytes: is_accepted.then_some(bytes)?,
        ..Keep::default()
    };
    for part in parts {
        if let Some(folder) = part.strip_prefix(b"folder=") {
            keep.folder = Some(PathBuf::from(OsStr::from_bytes(folder)));
            continue;
        }
        match str::from_utf8(part).ok()?.split_once('=') {
            None if part == b"panic" => keep.rules.panic = true,
            Some(("stuck", time)) => keep.rules.stuck = Some(duration(time)?),
            Some(("latency", time)) => keep.rules.latency = Some(duration(time)?),
            _ => return None,
        }
    }
    Some(keep)
}

/// Parses `250us`, `100ms` or `2s`.
fn duration(text: &str) -> Option<Duration> {
    let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
    let number: u64 = digits.parse().ok().filter(|number| *number > 0)?;
    match &text[digits.len()..] {
        "us" => Some(Duration::from_micros(number)),
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
