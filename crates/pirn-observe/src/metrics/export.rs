//! Metrics as text: for Prometheus, and as lines of JSON for `pirn top` and the console. Both
//! writers read one [table](METRICS).
//!
//! Names, units and suffixes for Prometheus are as `promtool check metrics` wants them. No label
//! has as many values as there are threads.
//!
//! ```text
//! {"time":1790000000000000000,"interval":1.0,
//!  "threads":{"new":0,"runnable":0,"running":1,"waiting":9},
//!  "parks":{"read":3,…},"stack_slots":{…},"memory":{…},
//!  "counters":{"started":10,"parks":3,…},"rates":{"started":0.5,…},"gauges":{"run_queue":0,…},
//!  "latency":{"count":3,"sum_ns":8000,"buckets":[[2048,1],[4096,2]]},
//!  "carriers":[{"number":0,"tid":17,"state":"running","spare":false,"run_queue":0,"mounts":3,…}]}
//! ```
//!
//! In JSON, times are in nanoseconds since 1970, and rates per second since the line before. A
//! bucket is its upper end in nanoseconds, `null` for the last one, and its count.

use super::snapshot::{Carrier, CarrierState, Metrics};
use std::fmt::{self, Display, Formatter, Write};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The ends of the ranges of a histogram, as powers of two of nanoseconds: 256 ns to 34 s.
const POWERS: core::ops::RangeInclusive<u32> = 8..=35;

/// What a metric counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
    /// A counter of nanoseconds, which Prometheus gets in seconds.
    Seconds,
}
use Kind::{Counter, Gauge, Seconds};

/// A row of the table.
struct Metric {
    /// The name for Prometheus, without `pirn_`, unit and `_total`.
    name: &'static str,
    /// The name in JSON; empty: it is not there.
    json: &'static str,
    kind: Kind,
    help: &'static str,
    values: Values,
}

enum Values {
    One(fn(&Metrics) -> u64),
    /// One for each value of this label.
    By(&'static str, fn(&Metrics) -> Vec<(&'static str, u64)>),
}
use Values::{By, One};

/// Writes rows as `kind name json "help": values`.
macro_rules! table {
    ($($kind:ident $name:literal $json:literal $help:literal: $values:expr;)*) => {
        &[$(Metric { name: $name, json: $json, kind: $kind, help: $help, values: $values }),*]
    };
}

/// All metrics but the histogram.
const METRICS: &[Metric] = table! {
    Gauge "threads" "threads" "Virtual threads, by state.": By("state", |m| {
        let it = &m.threads;
        vec![("new", it.new), ("runnable", it.runnable), ("running", it.running), ("waiting", it.waiting)]
    });
    Counter "threads_started" "started" "Virtual threads started.": One(|m| m.started);
    Counter "threads_ended" "ended" "Virtual threads ended.": One(|m| m.ended);
    Counter "threads_panicked" "panicked" "Virtual threads that panicked.": One(|m| m.panicked);
    Counter "interrupts" "interrupts" "Interrupts of virtual threads.": One(|m| m.interrupts);
    Counter "parks" "parks" "Unmounts of threads that wait, by what for.":
        By("kind", |m| m.parks.by_kind().collect());
    Counter "wakes" "wakes" "Parked threads made runnable.": One(|m| m.wakes);
    Counter "mounts" "mounts" "Mounts of threads on carriers.": One(|m| m.mounts);
    Counter "preemptions" "preemptions" "Threads preempted.": One(|m| m.preemptions);
    Gauge "carriers" "" "Carriers, by what they do.": By("state", |m| {
        let count = |state| m.carriers.iter().filter(|it| it.state == state).count() as u64;
        CarrierState::ALL.map(|state| (state.name(), count(state))).into()
    });
    Gauge "parallelism" "parallelism" "Virtual threads that may run at the same time.":
        One(|m| m.parallelism as u64);
    Gauge "spare_carriers" "spare_carriers" "Carriers in use beyond the parallelism.":
        One(|m| m.spare_carriers as u64);
    Counter "steals" "steals" "Takings of threads from another carrier's queue.": One(|m| m.steals);
    Gauge "run_queue_threads" "run_queue" "Runnable threads in the queues.":
        One(|m| m.run_queue as u64);
    Counter "carrier_stuck_episodes" "stuck_episodes" "How often a carrier was stuck in one thread.":
        One(|m| m.carriers.iter().map(|it| it.stuck_episodes).sum());
    Seconds "carrier_stuck" "" "For how long carriers were stuck.":
        One(|m| m.carriers.iter().map(|it| it.stuck.as_nanos() as u64).sum());
    Counter "offloaded_calls" "offloaded_calls" "Calls made by platform threads, by kind.":
        By("kind", |m| {
            let it = &m.offloaded_calls;
            vec![("bounded", it.bounded), ("dedicated", it.dedicated)]
        });
    Gauge "offload_threads" "offload_threads" "Platform threads for such calls.":
        One(|m| m.offload_threads as u64);
    Gauge "timers" "timers" "Armed timers.": One(|m| m.timers as u64);
    Gauge "descriptors" "descriptors" "Descriptors registered with epoll.":
        One(|m| m.descriptors as u64);
    Gauge "scopes" "scopes" "Open scopes.": One(|m| m.scopes as u64);
    Gauge "stack_slots" "stack_slots" "Slots of stacks, by state.": By("state", |m| {
        let it = &m.stack_slots;
        vec![("used", it.used), ("cached", it.cached), ("free", it.free), ("closed", it.closed)]
    });
    Counter "events_dropped" "events_dropped" "Events that the recorder has lost.":
        One(|m| m.events_dropped);
    Counter "diagnostics" "" "Diagnostics that were found, by name.":
        By("kind", |m| m.diagnostics.clone());
    Gauge "memory_bytes" "memory" "Memory of virtual threads and of the process, by kind.":
        By("kind", |m| m.memory.by_kind().into());
};

impl Metric {
    /// Returns the sum of its values.
    fn sum(&self, metrics: &Metrics) -> u64 {
        match self.values {
            One(value) => value(metrics),
            By(_, values) => values(metrics).iter().map(|(_, value)| value).sum(),
        }
    }

    fn write(&self, metrics: &Metrics, out: &mut String) -> fmt::Result {
        let (suffix, kind) = match self.kind {
            Gauge => ("", "gauge"),
            Counter => ("_total", "counter"),
            Seconds => ("_seconds_total", "counter"),
        };
        let name = format!("{}{suffix}", self.name);
        header(out, &name, kind, self.help)?;
        match self.values {
            One(value) if self.kind == Seconds => {
                writeln!(out, "pirn_{name} {}", InSeconds(value(metrics)))
            }
            One(value) => writeln!(out, "pirn_{name} {}", value(metrics)),
            By(label, values) => values(metrics).iter().try_for_each(|(of, value)| {
                writeln!(out, "pirn_{name}{{{label}=\"{of}\"}} {value}")
            }),
        }
    }
}

impl Metrics {
    /// Returns the metrics in the text format of Prometheus. The names are the fields' names with
    /// `pirn_` before them, except for a few that say more.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        let _ = self.write_to(&mut out); // Writing to a string does not fail.
        out
    }

    fn write_to(&self, out: &mut String) -> fmt::Result {
        METRICS.iter().try_for_each(|it| it.write(self, out))?;
        self.write_latency(out)?;
        header(out, "build_info", "gauge", "The version of Pirn.")?;
        let version = env!("CARGO_PKG_VERSION");
        writeln!(out, "pirn_build_info{{version=\"{version}\"}} 1")
    }

    fn write_latency(&self, out: &mut String) -> fmt::Result {
        let (name, times) = ("schedule_latency_seconds", &self.schedule_latency);
        let help = "Time from runnable to running, of one start or wake in 64.";
        header(out, name, "histogram", help)?;
        for power in POWERS {
            let (end, count) = (InSeconds(1 << power), times.up_to(1 << power));
            writeln!(out, "pirn_{name}_bucket{{le=\"{end}\"}} {count}")?;
        }
        let (count, sum) = (times.count(), times.sum().as_nanos() as u64);
        writeln!(out, "pirn_{name}_bucket{{le=\"+Inf\"}} {count}")?;
        writeln!(out, "pirn_{name}_sum {}", InSeconds(sum))?;
        writeln!(out, "pirn_{name}_count {count}")
    }
}

fn header(out: &mut String, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(out, "# HELP pirn_{name} {help}\n# TYPE pirn_{name} {kind}")
}

/// Nanoseconds, written as seconds.
struct InSeconds(u64);

impl Display for InSeconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if nanos == 0 {
            return write!(f, "{seconds}");
        }
        let text = format!("{nanos:09}");
        write!(f, "{seconds}.{}", text.trim_end_matches('0'))
    }
}

/// A snapshot as a line of JSON, and when it was taken.
pub struct Line {
    metrics: Metrics,
    time: SystemTime,
    /// The time since the snapshot before, in seconds.
    interval: f64,
    /// The counters in the line before.
    before: Vec<u64>,
}

/// Returns the rows of a kind that JSON has.
fn rows(kind: Kind) -> impl Iterator<Item = &'static Metric> {
    let rows = METRICS.iter();
    rows.filter(move |it| it.kind == kind && !it.json.is_empty())
}

impl Line {
    /// Returns the line of a snapshot that has just been taken, `interval` after the one of the
    /// line `before`.
    pub fn new(metrics: Metrics, interval: Duration, before: Option<&Line>) -> Line {
        let earlier = before.map_or(&metrics, |line| &line.metrics);
        Line {
            before: rows(Counter).map(|it| it.sum(earlier)).collect(),
            metrics,
            time: SystemTime::now(),
            interval: interval.as_secs_f64(),
        }
    }
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let time = self.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (nanos, interval) = (time.as_nanos(), self.interval);
        write!(f, "{{\"time\":{nanos},\"interval\":{interval:.6}")?;
        for row in METRICS.iter().filter(|row| !row.json.is_empty()) {
            if let By(_, values) = row.values
                && (row.kind == Gauge || row.json == "parks")
            {
                object(f, row.json, values(metrics))?;
            }
        }
        let counters = || rows(Counter).map(|row| (row.json, row.sum(metrics)));
        object(f, "counters", counters())?;
        let rates = counters().zip(&self.before).map(|((name, now), then)| {
            let rate = now.saturating_sub(*then) as f64 / self.interval.max(1e-9);
            (name, format!("{rate:.1}"))
        });
        object(f, "rates", rates)?;
        let single = rows(Gauge).filter(|row| matches!(row.values, One(_)));
        object(f, "gauges", single.map(|row| (row.json, row.sum(metrics))))?;
        let latency = &metrics.schedule_latency;
        let (count, sum) = (latency.count(), latency.sum().as_nanos());
        write!(
            f,
            ",\"latency\":{{\"count\":{count},\"sum_ns\":{sum},\"buckets\":"
        )?;
        list(f, latency.ranges(), |f, (end, count)| match end {
            Duration::MAX => write!(f, "[null,{count}]"),
            end => write!(f, "[{},{count}]", end.as_nanos()),
        })?;
        f.write_str("},\"carriers\":")?;
        list(f, &metrics.carriers, write_carrier)?;
        f.write_str("}")
    }
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

/// Writes an array.
fn list<T>(
    f: &mut Formatter<'_>,
    items: impl IntoIterator<Item = T>,
    mut write: impl FnMut(&mut Formatter<'_>, T) -> fmt::Result,
) -> fmt::Result {
    f.write_str("[")?;
    for (place, item) in items.into_iter().enumerate() {
        f.write_str(if place > 0 { "," } else { "" })?;
        write(f, item)?;
    }
    f.write_str("]")
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
