//! Unmodified crates from the registry, run on virtual threads.
//!
//! The tests are in `tests/`, one file per crate; this library has their common code. Most tests
//! have one shape: all of [`THREADS`] virtual threads enter a blocking call of the crate, and only
//! when all of them have arrived there does the test release them. A runtime whose carriers blocked
//! in that call would run [`CARRIERS`] of the threads and never see the others arrive. So it cannot
//! pass by luck: it hangs, and its watchdog names the test.
//!
//! Every test is marked `#[watched]`, in files that `use pirn_compat::{self as common, watched}`:
//! the attribute calls [`watch`] there.

use std::io::{self, Write};
use std::panic;
use std::sync::{Condvar, Mutex, Once};
use std::time::Duration;

use pirn::{Config, thread};
use rustix::process::{Resource, getrlimit, setrlimit};

pub use pirn_testing::{Watchdog, watched};

/// The number of carriers on which the tests run.
pub const CARRIERS: usize = 2;

/// The number of virtual threads in each test: they outnumber the carriers 100 to 1.
pub const THREADS: usize = 100 * CARRIERS;

/// A timeout that must not expire: the watchdog is earlier.
pub const NEVER: Duration = Duration::from_secs(3600);

/// Prepares the process for its tests.
fn setup() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        report_panics_at_once();
        raise_open_files_limit();
        Config::new()
            .parallelism(CARRIERS)
            .spare_carriers(0)
            .apply()
            .expect("set the number of carriers");
    });
}

/// Prints panics straight to standard error. The test harness would hold the message back until the
/// test ends, and a test whose other threads wait for the panicked one never ends.
fn report_panics_at_once() {
    panic::set_hook(Box::new(|info| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("<unnamed>");
        let backtrace = std::backtrace::Backtrace::capture();
        let _ = writeln!(io::stderr(), "\nthread {name}: {info}\n{backtrace}");
    }));
}

/// Raises the limit of open files. Two ends of [`THREADS`] connections in several tests at once are
/// more than the usual soft limit.
fn raise_open_files_limit() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).expect("raise RLIMIT_NOFILE to its hard limit");
}

/// Prints, past the test harness's capture, that a test was skipped and why.
pub fn skipped(reason: &str) {
    let test = std::thread::current();
    let message = format!("\nskipped: {}: {reason}\n", test.name().unwrap_or("?"));
    let _ = io::stderr().write_all(message.as_bytes()); // in one piece, among the harness's own
}

/// Runs `body(0)` to `body(threads - 1)`, each on its own virtual thread, and returns their results
/// in that order.
///
/// # Panics
///
/// If one of them panics.
pub fn on_threads<T: Send>(threads: usize, body: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let body = &body;
    thread::scope(|scope| {
        let handles: Vec<_> = (0..threads)
            .map(|index| {
                scope.spawn(move || {
                    assert!(thread::current().is_virtual());
                    body(index)
                })
            })
            .collect();
        handles
            .into_iter()
            .map(|handle| handle.join().expect("a thread of the test panicked"))
            .collect()
    })
}

/// Prepares the process for a test, and aborts it with a message that names the test unless the
/// returned guard is dropped within `limit`. `#[watched]` calls this first.
///
/// # Panics
///
/// If the runtime refuses its settings or the limit on open files cannot be raised.
#[must_use = "dropping the guard disarms the watchdog"]
pub fn watch(test: &'static str, limit: Duration) -> Watchdog {
    setup();
    Watchdog::start(limit, move || {
        let _ = writeln!(io::stderr(), "\n{test} hung: not done after {limit:?}");
    })
}

/// A latch: threads arrive, and it opens when all the expected ones have arrived.
#[derive(Debug)]
pub struct Latch {
    missing: Mutex<usize>,
    open: Condvar,
}

impl Latch {
    /// Returns a latch that opens after `expected` arrivals.
    pub fn new(expected: usize) -> Self {
        Latch {
            missing: Mutex::new(expected),
            open: Condvar::new(),
        }
    }

    /// Counts one arrival, without waiting for the others.
    ///
    /// # Panics
    ///
    /// If all the expected arrivals have happened already.
    pub fn arrive(&self) {
        let mut missing = self.missing.lock().unwrap();
        *missing = missing.checked_sub(1).expect("one arrival too many");
        if *missing == 0 {
            self.open.notify_all();
        }
    }

    /// Waits until all the expected threads have arrived.
    pub fn wait(&self) {
        let missing = self.missing.lock().unwrap();
        drop(self.open.wait_while(missing, |missing| *missing > 0));
    }

    /// Counts one arrival and waits for the others.
    pub fn arrive_and_wait(&self) {
        self.arrive();
        self.wait();
    }
}
