//! A snapshot as one line of JSON, for `pirn top` and the console.
//!
//! ```text
//! {"time":1790000000000000000,"interval":1.0,
//!  "threads":{"new":0,"runnable":0,"running":1,"waiting":9},
//!  "counters":{"started":10,…},"rates":{"started":0.5,…},"parks":{"read":3,…},
//!  "gauges":{"run_queue":0,…},"stack_slots":{…},"memory":{…},
//!  "latency":{"count":3,"sum_ns":8000,"buckets":[[2048,1],[4096,2]]},
//!  "carriers":[{"number":0,"tid":17,"state":"running","spare":false,"run_queue":0,"mounts":3,…}]}
//! ```
//!
//! Times are in nanoseconds since 1970, rates per second since the line before. A bucket is its
//! upper end in nanoseconds, `null` for the last one, and its count.

use super::snapshot::{Carrier, Metrics};
use std::fmt::{self, Display, Formatter};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A snapshot, and when it was taken.
pub struct Line {
    metrics: Metrics,
    time: SystemTime,
    /// The time since the snapshot before.
    interval: f64,
    /// The counters as they were then.
    before: [(&'static str, u64); COUNTERS],
}

const COUNTERS: usize = 12;

impl Line {
    /// Returns the line of a snapshot that has just been taken, `interval` after the one of the
    /// line `before`.
    pub fn new(metrics: Metrics, interval: Duration, before: Option<&Line>) -> Line {
        let earlier = before.map_or(&metrics, |line| &line.metrics);
        Line {
            before: counters(earlier),
            metrics,
            time: SystemTime::now(),
            interval: interval.as_secs_f64(),
        }
    }
}

fn counters(metrics: &Metrics) -> [(&'static str, u64); COUNTERS] {
    let stuck = metrics
        .carriers
        .iter()
        .map(|carrier| carrier.stuck_episodes);
    [
        ("started", metrics.started),
        ("ended", metrics.ended),
        ("panicked", metrics.panicked),
        ("interrupts", metrics.interrupts),
        ("parks", metrics.parks.all()),
        ("wakes", metrics.wakes),
        ("mounts", metrics.mounts),
        ("steals", metrics.steals),
        ("preemptions", metrics.preemptions),
        (
            "offloaded_calls",
            metrics.offloaded_calls.bounded + metrics.offloaded_calls.dedicated,
        ),
        ("stuck_episodes", stuck.sum()),
        ("events_dropped", metrics.events_dropped),
    ]
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let time = self.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        write!(
            f,
            "{{\"time\":{},\"interval\":{:.6}",
            time.as_nanos(),
            self.interval
        )?;
        let threads = &metrics.threads;
        let states = [
            ("new", threads.new),
            ("runnable", threads.runnable),
            ("running", threads.running),
            ("waiting", threads.waiting),
        ];
        object(f, "threads", states)?;
        let counters = counters(metrics);
        object(f, "counters", counters)?;
        let rates = counters
            .iter()
            .zip(self.before)
            .map(|(&(name, now), (_, then))| {
                let rate = now.saturating_sub(then) as f64 / self.interval.max(1e-9);
                (name, Rate(rate))
            });
        object(f, "rates", rates)?;
        object(f, "parks", metrics.parks.by_kind())?;
        object(f, "gauges", gauges(metrics))?;
        let slots = &metrics.stack_slots;
        let slots = [
            ("used", slots.used),
            ("cached", slots.cached),
            ("free", slots.free),
            ("closed", slots.closed),
        ];
        object(f, "stack_slots", slots)?;
        object(f, "memory", metrics.memory.by_kind())?;
        self.write_latency(f)?;
        f.write_str(",\"carriers\":[")?;
        for (place, carrier) in metrics.carriers.iter().enumerate() {
            f.write_str(if place > 0 { "," } else { "" })?;
            write_carrier(f, carrier)?;
        }
        f.write_str("]}")
    }
}

impl Line {
    fn write_latency(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let latency = &self.metrics.schedule_latency;
        let (count, sum) = (latency.count(), latency.sum().as_nanos());
        write!(
            f,
            ",\"latency\":{{\"count\":{count},\"sum_ns\":{sum},\"buckets\":["
        )?;
        for (place, (end, count)) in latency.ranges().enumerate() {
            f.write_str(if place > 0 { "," } else { "" })?;
            match end {
                Duration::MAX => write!(f, "[null,{count}]")?,
                end => write!(f, "[{},{count}]", end.as_nanos())?,
            }
        }
        f.write_str("]}")
    }
}

fn gauges(metrics: &Metrics) -> [(&'static str, usize); 7] {
    [
        ("parallelism", metrics.parallelism),
        ("spare_carriers", metrics.spare_carriers),
        ("run_queue", metrics.run_queue),
        ("offload_threads", metrics.offload_threads),
        ("timers", metrics.timers),
        ("descriptors", metrics.descriptors),
        ("scopes", metrics.scopes),
    ]
}

/// Writes a member that is an object of numbers, and not the first of its parent.
fn object<V: Display>(
    f: &mut Formatter<'_>,
    name: &str,
    members: impl IntoIterator<Item = (&'static str, V)>,
) -> fmt::Result {
    write!(f, ",\"{name}\":{{")?;
    for (place, (name, value)) in members.into_iter().enumerate() {
        f.write_str(if place > 0 { "," } else { "" })?;
        write!(f, "\"{name}\":{value}")?;
    }
    f.write_str("}")
}

fn write_carrier(f: &mut Formatter<'_>, carrier: &Carrier) -> fmt::Result {
    let (number, state, spare) = (carrier.number, carrier.state.name(), carrier.spare);
    write!(
        f,
        "{{\"number\":{number},\"state\":\"{state}\",\"spare\":{spare},\"tid\":"
    )?;
    match carrier.tid {
        Some(tid) => write!(f, "{tid}")?,
        None => f.write_str("null")?,
    }
    for (name, value) in [
        ("processor", carrier.processor as u64),
        ("run_queue", carrier.run_queue as u64),
        ("mounts", carrier.mounts),
        ("parks", carrier.parks),
        ("wakes", carrier.wakes),
        ("started", carrier.started),
        ("ended", carrier.ended),
        ("steals", carrier.steals),
        ("preemptions", carrier.preemptions),
        ("stuck_episodes", carrier.stuck_episodes),
        ("stuck_ns", carrier.stuck.as_nanos() as u64),
    ] {
        write!(f, ",\"{name}\":{value}")?;
    }
    f.write_str("}")
}

/// A number per second.
struct Rate(f64);

impl Display for Rate {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.1}", self.0)
    }
}
