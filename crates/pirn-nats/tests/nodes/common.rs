//! The watchdog of these tests, and waiting for what other processes do.

use std::io::Write;
use std::time::Duration;

pub use pirn_testing::{Gate, Watchdog, watched};

/// Starts the watchdog of a test; `#[watched]` calls this.
pub fn watch(test: &'static str, limit: Duration) -> Watchdog {
    Watchdog::start(limit, move || {
        let actors = pirn_actor::snapshot::take();
        // Past the capture of the test harness.
        let mut out = std::io::stderr();
        let _ = writeln!(out, "watchdog: {test} hung for {limit:?}\n{actors:#?}");
        let _ = writeln!(out, "{}", pirn::dump::take());
    })
}

/// Waits until something holds that another process or the network has to do: looked at now and
/// then, since nothing tells of it.
pub fn until(holds: impl Fn() -> bool) {
    while !holds() {
        pirn::thread::sleep(Duration::from_millis(5));
    }
}
