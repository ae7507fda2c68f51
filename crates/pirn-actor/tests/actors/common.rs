//! The watchdog of these tests.

use std::io::Write;
use std::time::Duration;

#[allow(unused_imports)] // not all tests use it
pub use pirn_testing::Gate;
pub use pirn_testing::{Watchdog, watched};

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

/// Yields until something holds.
#[allow(dead_code)] // not all tests use it
pub fn until(holds: impl Fn() -> bool) {
    while !holds() {
        pirn::thread::yield_now();
    }
}

/// Numbers without a pattern, the same ones each time.
#[allow(dead_code)] // not all tests use it
pub struct Random(pub u64);

#[allow(dead_code)]
impl Random {
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}
