//! The watchdog of these tests, gates, and waiting for what other processes do.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

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

/// A door that is opened once, for all who wait at it.
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

    pub fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(open, |open| !*open).unwrap());
    }
}

/// Waits until something holds that another process or the network has to do: looked at now and
/// then, since nothing tells of it.
pub fn until(holds: impl Fn() -> bool) {
    while !holds() {
        pirn::thread::sleep(Duration::from_millis(5));
    }
}
