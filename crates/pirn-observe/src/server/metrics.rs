//! Answers about metrics.

use super::request::{Refusal, Request};
use crate::metrics::{Depth, Line, Memory, Metrics, collect, metrics};
use pirn_rt::runtime;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::thread;
use std::time::{Duration, Instant};

/// The intervals of `watch`, in milliseconds.
const INTERVALS: RangeInclusive<u64> = 10..=3_600_000;
const INTERVAL: u64 = 1000;

/// While metrics are watched, the memory is found out this often: asking about many stacks takes
/// milliseconds.
const MEMORY_EVERY: Duration = Duration::from_secs(5);

/// `metrics`: the text for Prometheus.
pub fn answer(_: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(metrics().to_prometheus().as_bytes())
}

/// `watch interval-ms=N`: a line of JSON per interval, until the client hangs up.
pub fn watch(request: &Request<'_>, out: &mut dyn Write) -> io::Result<()> {
    let interval = request.number("interval-ms")?.unwrap_or(INTERVAL);
    if !INTERVALS.contains(&interval) {
        let (least, most) = INTERVALS.into_inner();
        let text = format!("interval-ms is {interval}, not from {least} to {most}");
        return Err(Refusal(text).into());
    }
    let interval = Duration::from_millis(interval);
    let (mut memory, mut before) = (None, None::<Line>);
    let (mut next, mut last) = (Instant::now(), Instant::now());
    loop {
        let metrics = snapshot(&mut memory);
        let now = Instant::now();
        let line = Line::new(metrics, now - last, before.as_ref());
        last = now;
        writeln!(out, "{line}")?;
        out.flush()?;
        before = Some(line);
        // A client that is slow gets fewer lines, not old ones.
        next = (next + interval).max(Instant::now());
        thread::sleep(next - Instant::now());
    }
}

/// Takes a snapshot, with memory that is a few seconds old at most.
fn snapshot(memory: &mut Option<(Instant, Memory)>) -> Metrics {
    let Some(runtime) = runtime::get() else {
        return Metrics::default();
    };
    match memory {
        Some((since, memory)) if since.elapsed() < MEMORY_EVERY => {
            let mut metrics = collect(runtime, Depth::Counters);
            metrics.memory = *memory;
            metrics
        }
        _ => {
            let metrics = collect(runtime, Depth::Thorough);
            *memory = Some((Instant::now(), metrics.memory));
            metrics
        }
    }
}
