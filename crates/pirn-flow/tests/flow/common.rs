//! The watchdog of these tests.

use std::io::Write;
use std::time::Duration;

pub use pirn_testing::{Gate, Watchdog, watched};

pub const HOUR: Duration = Duration::from_secs(3600);

/// Starts the watchdog of a test; `#[watched]` calls this.
pub fn watch(test: &'static str, limit: Duration) -> Watchdog {
    Watchdog::start(limit, move || {
        // Past the capture of the test harness.
        let mut out = std::io::stderr();
        let _ = writeln!(out, "watchdog: {test} hung for {limit:?}");
        let _ = writeln!(out, "{}", pirn::dump::take());
    })
}

/// Yields until something holds.
pub fn until(holds: impl Fn() -> bool) {
    while !holds() {
        pirn::thread::yield_now();
    }
}
