//! Unsolicited lines on standard error, about conditions that are no errors, but probably not what
//! the operator wants. Each is written at most once per process. `PIRN_QUIET` in the environment,
//! with any value, switches them off.

use crate::observe::events::settings;
use crate::{config, environment};
use core::sync::atomic::{AtomicBool, Ordering};
use std::ffi::OsStr;
use std::io::{self, Write};

/// Switches the notices off.
const QUIET: &str = "PIRN_QUIET";

/// Variables that other code than the settings reads.
const OTHERS: [&str; 9] = [
    QUIET,
    "PIRN_NO_GUARD_MARKERS",
    "PIRN_NO_FSGSBASE",
    settings::VARIABLE,
    // Of the library that is preloaded, and of the command that does so.
    "PIRN_CHILDREN",
    "PIRN_LIBRARY",
    "PIRN_LOG",
    "PIRN_PLATFORM",
    "PIRN_PTHREADS",
];

/// Prefixes of the variables of this project's own tests.
const OF_TESTS: [&str; 2] = ["PIRN_TEST", "PIRN_STRESS"];

/// Whether notices are switched off, as [`unknown_variables`] found it at the start.
static OFF: AtomicBool = AtomicBool::new(false);

/// Returns whether notices are switched off. It neither locks nor allocates.
pub(crate) fn are_off() -> bool {
    OFF.load(Ordering::Relaxed) // Relaxed: set once, at the start.
}

/// Writes a line, unless notices are switched off.
pub(crate) fn write(line: &str) {
    if environment::variable(QUIET).is_none() {
        // Not `eprintln!`, which panics if standard error cannot be written.
        let _ = writeln!(io::stderr(), "pirn: {line}");
    }
}

/// At the start, reports the variables that look like settings but are not: most likely misspelt
/// ones.
pub(crate) fn unknown_variables() {
    let off = environment::variable(QUIET).is_some();
    OFF.store(off, Ordering::Relaxed); // Relaxed: as above.
    if !environment::is_trusted() {
        return;
    }
    for (name, _) in std::env::vars_os() {
        if let Some(line) = about(&name) {
            write(&line);
        }
    }
}

/// Returns the text about a variable, if there is one.
fn about(name: &OsStr) -> Option<String> {
    let name = name.to_string_lossy();
    let known = || config::variables().chain(OTHERS);
    if !name.starts_with("PIRN_")
        || OF_TESTS.iter().any(|prefix| name.starts_with(prefix))
        || known().any(|known| known == name)
    {
        return None;
    }
    let nearest = known().min_by_key(|known| distance(known, &name))?;
    Some(if distance(nearest, &name) <= name.len() / 3 {
        format!("the variable {name} is unknown and has no effect (did you mean {nearest}?)")
    } else {
        let known: Vec<_> = config::variables().collect();
        let known = known.join(", ");
        format!("the variable {name} is unknown and has no effect (known: {known})")
    })
}

/// Returns the number of insertions, deletions and replacements of bytes that turn one text into
/// the other.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests;
