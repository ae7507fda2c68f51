//! Counts the results of requests and connections.

use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use anyhow::{Context, Result};
use bench_load::report::{Latency, Report};
use hdrhistogram::Histogram;
use nix::time::{ClockId, clock_getcpuclockid, clock_gettime};
use nix::unistd::Pid;

/// No time limit on the command line is longer than a day; with connecting, twice that.
const LONGEST_MICROS: u64 = 2 * 24 * 60 * 60 * 1_000_000;

/// What all connections count in. There is one thread, so the lock is never contended.
pub struct Tally(Mutex<Counts>);

struct Counts {
    micros: Histogram<u64>,
    errors: u64,
    first_error: Option<String>,
    open: u64,
    peak: u64,
}

/// Counts a connection as open for as long as it lives.
pub struct Open<'a>(&'a Tally);

/// How long a load took.
pub struct Times {
    /// From beginning to end.
    pub wall: Duration,
    /// The time that the requests are spread over.
    pub per: Duration,
    /// How late the latest arrival was.
    pub late: Duration,
}

impl Tally {
    /// All zero.
    pub fn new() -> Tally {
        Tally(Mutex::new(Counts {
            micros: Histogram::new_with_bounds(1, LONGEST_MICROS, 3).expect("the bounds are sound"),
            errors: 0,
            first_error: None,
            open: 0,
            peak: 0,
        }))
    }

    /// Another connection is open.
    pub fn opened(&self) -> Open<'_> {
        let mut counts = self.counts();
        counts.open += 1;
        counts.peak = counts.peak.max(counts.open);
        Open(self)
    }

    /// A request was answered as expected.
    pub fn ok(&self, latency: Duration) {
        let micros = u64::try_from(latency.as_micros()).unwrap_or(u64::MAX);
        self.counts().micros.saturating_record(micros);
    }

    /// This many requests have failed, all for one reason.
    pub fn failed(&self, requests: u64, reason: impl FnOnce() -> String) {
        let mut counts = self.counts();
        counts.errors += requests;
        counts.first_error.get_or_insert_with(reason);
    }

    /// How many requests were answered as expected until now.
    pub fn answered(&self) -> u64 {
        self.counts().micros.len()
    }

    /// What has been counted until now.
    pub fn report(&self, times: &Times) -> Report {
        let counts = self.counts();
        let ok = counts.micros.len();
        Report {
            requests: ok + counts.errors,
            ok,
            errors: counts.errors,
            first_error: counts.first_error.clone(),
            latency: latency(&counts.micros),
            peak_connections: counts.peak,
            wall_s: times.wall.as_secs_f64(),
            per_second: ok as f64 / times.per.as_secs_f64(),
            late_ms: times.late.as_secs_f64() * 1e3,
            cpu_s: cpu_seconds(),
            server: None,
        }
    }

    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().expect("nothing panics while it counts")
    }
}

impl Drop for Open<'_> {
    fn drop(&mut self) {
        self.0.counts().open -= 1;
    }
}

fn latency(micros: &Histogram<u64>) -> Latency {
    if micros.is_empty() {
        return Latency::default();
    }
    let at = |quantile| Some(micros.value_at_quantile(quantile) as f64 / 1e3);
    Latency {
        mean_ms: Some(micros.mean() / 1e3),
        p50_ms: at(0.5),
        p90_ms: at(0.9),
        p99_ms: at(0.99),
        max_ms: at(1.0),
    }
}

fn cpu_seconds() -> f64 {
    clock_gettime(ClockId::CLOCK_PROCESS_CPUTIME_ID)
        .map_or(0.0, |time| Duration::from(time).as_secs_f64())
}

/// The processor time, in seconds, that a process has taken.
pub fn processor_time(pid: i32) -> Result<f64> {
    let clock = clock_getcpuclockid(Pid::from_raw(pid));
    let time = clock.and_then(clock_gettime);
    let time = time.with_context(|| format!("cannot read the times of process {pid}"))?;
    Ok(Duration::from(time).as_secs_f64())
}
