//! What the program runs in: its environment, as far as that can be trusted, lines to its operator,
//! and whether its allocator has memory.
//!
//! A program with more rights than its caller (set-user-ID, file capabilities) must not do what its
//! caller writes into variables: the kernel says so by `AT_SECURE`, and all variables of this
//! library are then as if they were not set.

use core::sync::atomic::{AtomicBool, Ordering};
use std::collections::TryReserveError;
use std::ffi::OsString;
use std::io::{self, Write};

/// Returns whether the caller of this program may set what it does.
pub fn is_trusted() -> bool {
    // SAFETY: no requirements.
    unsafe { libc::getauxval(libc::AT_SECURE) == 0 }
}

/// Returns a variable.
pub fn variable(name: &str) -> Option<OsString> {
    is_trusted().then(|| std::env::var_os(name)).flatten()
}

/// Switches off [notices](notice), with any value.
pub const QUIET: &str = "PIRN_QUIET";

/// Whether notices are switched off, as [`prepare_notices`] found it at the start.
static NO_NOTICES: AtomicBool = AtomicBool::new(false);

/// Finds out whether notices are switched off, at the start.
pub fn prepare_notices() {
    let off = variable(QUIET).is_some();
    NO_NOTICES.store(off, Ordering::Relaxed); // Relaxed: set before there are virtual threads.
}

/// Returns whether notices are switched off. It neither locks nor allocates.
pub fn notices_are_off() -> bool {
    NO_NOTICES.load(Ordering::Relaxed) // Relaxed: set once, at the start.
}

/// Writes a notice, unless notices are switched off: an unsolicited line on standard error, about a
/// condition that is not an error, but probably not what the operator wants. Each is written at
/// most once per process.
pub fn notice(line: &str) {
    if !notices_are_off() {
        // Not `eprintln!`, which panics if standard error cannot be written.
        let _ = writeln!(io::stderr(), "pirn: {line}");
    }
}

/// Writes a notice, the first time with this flag, that the system refuses another platform thread,
/// and what happens without it.
#[cold]
pub fn notice_no_thread(said: &AtomicBool, error: &io::Error, so: &str) {
    // Relaxed: no other data.
    if !said.swap(true, Ordering::Relaxed) {
        notice(&format!(
            "no more platform threads ({error}): {so} (raise `ulimit -u` or the cgroup's pids.max)"
        ));
    }
}

/// Asks the program's allocator for this much memory, and gives it back: for a caller that is about
/// to allocate in a way that would abort the process.
///
/// # Errors
/// There is not that much memory.
pub fn probe_allocator(bytes: usize) -> Result<(), TryReserveError> {
    let mut room: Vec<u8> = Vec::new();
    core::hint::black_box(&mut room).try_reserve_exact(bytes)
}
