//! Times that the tests draw, and their limits.

use pirn::thread;
pub use pirn_testing::{Count, One, below};
use std::time::Duration;

pub const HOUR: Duration = Duration::from_secs(3600);
/// How late a thread may be in a run without pauses: points take some 100 ns.
pub const SLACK: Duration = Duration::from_millis(1);

pub fn millis(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// Sleeps for less than this number of milliseconds. Returns whether the thread was not
/// interrupted.
pub fn nap(millis: u64) -> bool {
    thread::sleep_interruptible(Duration::from_micros(below(1000 * millis))).is_ok()
}
