//! Times and failures that the tests draw.

use pirn::thread;
pub use pirn_testing::{Count, One, below};
use std::panic::resume_unwind;
use std::time::Duration;

/// Sleeps for less than this number of milliseconds. Returns whether the thread was not
/// interrupted.
pub fn nap(millis: u64) -> bool {
    thread::sleep_interruptible(Duration::from_micros(below(1000 * millis))).is_ok()
}

/// Panics, without a line on standard error.
pub fn fail() -> ! {
    resume_unwind(Box::new("a bug".to_string()))
}
