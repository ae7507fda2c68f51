//! Unsolicited lines on standard error, about conditions that are no errors, but probably not what
//! the operator wants. Each is written at most once per process. `PIRN_QUIET` in the environment,
//! with any value, switches them off.

use crate::environment;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io::{self, Write};

/// Switches the notices off.
pub const QUIET: &str = "PIRN_QUIET";

/// Whether notices are switched off, as [`prepare`] found it at the start.
static OFF: AtomicBool = AtomicBool::new(false);

/// Returns whether notices are switched off. It neither locks nor allocates.
pub fn are_off() -> bool {
    OFF.load(Ordering::Relaxed) // Relaxed: set once, at the start.
}

/// Writes a line, unless notices are switched off.
pub fn write(line: &str) {
    if environment::variable(QUIET).is_none() {
        // Not `eprintln!`, which panics if standard error cannot be written.
        let _ = writeln!(io::stderr(), "pirn: {line}");
    }
}

/// Finds out whether notices are switched off, at the start.
pub fn prepare() {
    let off = environment::variable(QUIET).is_some();
    OFF.store(off, Ordering::Relaxed); // Relaxed: as above.
}
