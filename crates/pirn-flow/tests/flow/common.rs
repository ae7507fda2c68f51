//! The watchdog of these tests, and gates.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

pub use pirn_testing::{Watchdog, watched};

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

/// A door that is opened once, for all threads that wait at it.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    pub fn new() -> Gate {
        Gate::default()
    }

    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    #[allow(dead_code)] // not all test programs use it
    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap()
    }

    pub fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(open, |open| !*open).unwrap());
    }
}

/// Yields until something holds.
pub fn until(holds: impl Fn() -> bool) {
    while !holds() {
        pirn::thread::yield_now();
    }
}
