//! The watchdog of these tests, gates, and waiting for what other processes do.

use std::io::Write;
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

pub use pirn_testing::watched;

/// Ends the process, naming the test, unless it is dropped in time.
pub struct Watchdog(Arc<(Mutex<bool>, Condvar)>);

/// Starts the watchdog of a test; `#[watched]` calls this. `PIRN_TEST_PATIENCE` multiplies limits.
pub fn watch(test: &'static str, limit: Duration) -> Watchdog {
    let patience = std::env::var("PIRN_TEST_PATIENCE")
        .ok()
        .and_then(|text| text.parse().ok());
    let limit = limit * patience.unwrap_or(1);
    let over = Arc::new((Mutex::new(false), Condvar::new()));
    let watched = Arc::clone(&over);
    std::thread::spawn(move || {
        let guard = watched.0.lock().unwrap();
        let (over, _) = watched
            .1
            .wait_timeout_while(guard, limit, |over| !*over)
            .unwrap();
        if !*over {
            let actors = pirn_actor::snapshot();
            // Past the capture of the test harness.
            let _ = writeln!(
                std::io::stderr(),
                "watchdog: {test} hung for {limit:?}\n{actors:#?}"
            );
            let _ = writeln!(std::io::stderr(), "{}", pirn::dump());
            std::process::abort();
        }
    });
    Watchdog(over)
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }
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
