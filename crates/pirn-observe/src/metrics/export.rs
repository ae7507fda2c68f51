//! The table of all metrics, and its two writers: the text for Prometheus, and lines of JSON for
//! `pirn top` and the console.
//!
//! Names, units and suffixes for Prometheus are as `promtool check metrics` wants them. No label
//! has as many values as there are threads.
//!
//! ```text
//! {"time":1790000000000000000,"interval":1.0,
//!  "threads":{"new":0,"runnable":0,"running":1,"waiting":9},
//!  "parks":{"read":3,…},"carrier_states":{…},"stack_slots":{…},"diagnostics":{…},"memory":{…},
//!  "counters":{"started":10,"parks":3,…},"rates":{"started":0.5,…},"gauges":{"run_queue":0,…},
//!  "latency":{"count":3,"sum_ns":8000,"buckets":[[2048,1],[4096,2]]},
//!  "carriers":[{"number":0,"tid":17,"state":"running","spare":false,"run_queue":0,"mounts":3,…}]}
//! ```
//!
//! In JSON, times are in nanoseconds since 1970, and rates per second since the line before. A
//! bucket is its upper end in nanoseconds, `null` for the last one, and its count.

use super::collect::{KINDS, MEMORY};
use super::{Carrier, CarrierState, Metrics, Sample};
use crate::findings;
use core::fmt::{self, Display, Formatter, Write};
use core::iter::zip;
use pirn_rt::sched::counters::upper_bound;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// The ends of the ranges of a histogram, as powers of two of nanoseconds: 256 ns to 34 s.
const POWERS: core::ops::RangeInclusive<u32> = 8..=35;

/// What a metric counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Gauge,
    Counter,
    /// A counter of nanoseconds, which Prometheus gets in seconds.
    Seconds,
}

/// A metric.
#[derive(Debug)]
pub(super) struct Metric {
    kind: Kind,
    /// Its name for programs, and in JSON.
    pub(super) key: &'static str,
    /// Its name for Prometheus, without `pirn_`, unit and `_total`.
    name: &'static str,
    /// The label of its parts for Prometheus; empty: it has one value.
    label: &'static str,
    pub(super) parts: &'static [&'static str],
    help: &'static str,
    values: fn(&Sample) -> Vec<u64>,
}

/// A metric with the values of its parts.
#[derive(Clone, Debug)]
pub(super) struct Row {
    pub(super) metric: &'static Metric,
    pub(super) values: Vec<u64>,
}

/// Makes metrics of rows `kind key name label parts help: values`.
macro_rules! table {
    ($($kind:ident $key:literal $name:literal $label:literal $parts:expr, $help:literal:
       $values:expr;)*) => {
        &[$(Metric {
            kind: Kind::$kind,
            key: $key,
            name: $name,
            label: $label,
            parts: $parts,
            help: $help,
            values: $values,
        }),*]
    };
}

const ONE: &[&str] = &[""];
const STATES: [&str; 4] = ["running", "searching", "sleeping", "stuck"];
const PARKS: [&str; KINDS.len()] = {
    let mut names = [""; KINDS.len()];
    let mut kind = 0;
    while kind < names.len() {
        names[kind] = KINDS[kind].0;
        kind += 1;
    }
    names
};

/// All metrics but the histogram.
const METRICS: &[Metric] = table! {
    Gauge "threads" "threads" "state" &["new", "runnable", "running", "waiting"],
        "Virtual threads, by state.": |it| it.threads.into();
    Counter "started" "threads_started" "" ONE, "Virtual threads started.": |it| vec![it.started];
    Counter "ended" "threads_ended" "" ONE, "Virtual threads ended.": |it| vec![it.ended];
    Counter "panicked" "threads_panicked" "" ONE, "Virtual threads that panicked.":
        |it| vec![it.panicked];
    Counter "interrupts" "interrupts" "" ONE, "Interrupts of virtual threads.":
        |it| vec![it.interrupts];
    Counter "parks" "parks" "kind" &PARKS, "Unmounts of threads that wait, by what for.":
        |it| it.parks.into();
    Counter "wakes" "wakes" "" ONE, "Parked threads made runnable.": |it| vec![it.wakes];
    Counter "mounts" "mounts" "" ONE, "Mounts of threads on carriers.": |it| vec![it.mounts];
    Counter "preemptions" "preemptions" "" ONE, "Threads preempted.": |it| vec![it.preemptions];
    Gauge "carrier_states" "carriers" "state" &STATES, "Carriers, by what they do.": |it| {
        let count = |state| it.carriers.iter().filter(|it| it.state == state).count() as u64;
        CarrierState::ALL.map(count).into()
    };
    Gauge "parallelism" "parallelism" "" ONE, "Virtual threads that may run at the same time.":
        |it| vec![it.parallelism as u64];
    Gauge "spare_carriers" "spare_carriers" "" ONE, "Carriers in use beyond the parallelism.":
        |it| vec![it.spare_carriers as u64];
    Counter "steals" "steals" "" ONE, "Takings of threads from another carrier's queue.":
        |it| vec![it.steals];
    Gauge "run_queue" "run_queue_threads" "" ONE, "Runnable threads in the queues.":
        |it| vec![it.run_queue as u64];
    Counter "stuck_episodes" "carrier_stuck_episodes" "" ONE,
        "How often a carrier was stuck in one thread.": |it| of_carriers(it, "stuck_episodes");
    Seconds "stuck_ns" "carrier_stuck" "" ONE, "For how long carriers were stuck.":
        |it| of_carriers(it, "stuck_ns");
    Counter "offloaded_calls" "offloaded_calls" "kind" &["bounded", "dedicated"],
        "Calls made by platform threads, by kind.": |it| it.offloaded_calls.into();
    Gauge "offload_threads" "offload_threads" "" ONE, "Platform threads for such calls.":
        |it| vec![it.offload_threads as u64];
    Gauge "timers" "timers" "" ONE, "Armed timers.": |it| vec![it.timers as u64];
    Gauge "descriptors" "descriptors" "" ONE, "Descriptors registered with epoll.":
        |it| vec![it.descriptors as u64];
    Gauge "scopes" "scopes" "" ONE, "Open scopes.": |it| vec![it.scopes as u64];
    Gauge "stack_slots" "stack_slots" "state" &["used", "cached", "free", "closed"],
        "Slots of stacks, by state.": |it| it.stack_slots.into();
    Counter "events_dropped" "events_dropped" "" ONE, "Events that the recorder has lost.":
        |it| vec![it.events_dropped];
    Counter "diagnostics" "diagnostics" "kind" &findings::NAMES,
        "Diagnostics that were found, by name.": |_| findings::totals().into();
    Gauge "memory" "memory_bytes" "kind" &MEMORY,
        "Memory of virtual threads and of the process, by kind.": |it| it.memory.into();
};

/// Returns the sum of a number of all carriers.
fn of_carriers(sample: &Sample, name: &str) -> Vec<u64> {
    let carriers = sample.carriers.iter();
    vec![carriers.filter_map(|carrier| carrier.get(name)).sum()]
}

/// Returns all metrics with their values.
pub(super) fn rows(sample: &Sample) -> Vec<Row> {
    let row = |metric: &'static Metric| Row {
        metric,
        values: (metric.values)(sample),
    };
    METRICS.iter().map(row).collect()
}

impl Row {
    pub(super) fn sum(&self) -> u64 {
        self.values.iter().sum()
    }

    fn write(&self, out: &mut String) -> fmt::Result {
        let (suffix, kind) = match self.metric.kind {
            Kind::Gauge => ("", "gauge"),
            Kind::Counter => ("_total", "counter"),
            Kind::Seconds => ("_seconds_total", "counter"),
        };
        let name = format!("{}{suffix}", self.metric.name);
        header(out, &name, kind, self.metric.help)?;
        let label = self.metric.label;
        zip(self.metric.parts, &self.values).try_for_each(|(part, value)| match self.metric.kind {
            Kind::Seconds => writeln!(out, "pirn_{name} {}", InSeconds(*value)),
            _ if label.is_empty() => writeln!(out, "pirn_{name} {value}"),
            _ => writeln!(out, "pirn_{name}{{{label}=\"{part}\"}} {value}"),
        })
    }
}

impl Metrics {
    /// Returns the metrics in the text format of Prometheus. Each number keeps its name, after
    /// `pirn_`; a few names say more.
    pub fn to_prometheus(&self) -> String {
        let mut out = String::new();
        let _ = self.write_to(&mut out); // Writing to a string does not fail.
        out
    }

    fn write_to(&self, out: &mut String) -> fmt::Result {
        self.rows.iter().try_for_each(|row| row.write(out))?;
        self.write_latency(out)?;
        header(out, "build_info", "gauge", "The version of Pirn.")?;
        let version = env!("CARGO_PKG_VERSION");
        writeln!(out, "pirn_build_info{{version=\"{version}\"}} 1")
    }

    fn write_latency(&self, out: &mut String) -> fmt::Result {
        let (name, times) = ("schedule_latency_seconds", &self.latency);
        let help = "Time from runnable to running, of one start or wake in 64.";
        header(out, name, "histogram", help)?;
        for power in POWERS {
            let counts = times.counts.iter().enumerate();
            let within = counts.filter(|&(bucket, _)| upper_bound(bucket) <= 1 << power);
            let count: u64 = within.map(|(_, count)| count).sum();
            let end = InSeconds(1 << power);
            writeln!(out, "pirn_{name}_bucket{{le=\"{end}\"}} {count}")?;
        }
        let count = times.count();
        writeln!(out, "pirn_{name}_bucket{{le=\"+Inf\"}} {count}")?;
        writeln!(out, "pirn_{name}_sum {}", InSeconds(times.sum))?;
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

impl Line {
    /// Returns the line of a snapshot that has just been taken, `interval` after the one of the
    /// line `before`.
    pub fn new(metrics: Metrics, interval: Duration, before: Option<&Line>) -> Line {
        let earlier = before.map_or(&metrics, |line| &line.metrics);
        Line {
            before: counters(earlier).map(|(_, sum)| sum).collect(),
            metrics,
            time: SystemTime::now(),
            interval: interval.as_secs_f64(),
        }
    }
}

/// Returns the sums of all counters.
fn counters(metrics: &Metrics) -> impl Iterator<Item = (&'static str, u64)> {
    let rows = metrics.rows.iter();
    let counters = rows.filter(|row| row.metric.kind == Kind::Counter);
    counters.map(|row| (row.metric.key, row.sum()))
}

impl Display for Line {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let metrics = &self.metrics;
        let time = self.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (nanos, interval) = (time.as_nanos(), self.interval);
        write!(f, "{{\"time\":{nanos},\"interval\":{interval:.6}")?;
        let (single, parted): (Vec<_>, Vec<_>) = metrics
            .rows
            .iter()
            .partition(|row| row.metric.label.is_empty());
        for row in parted {
            let parts = zip(row.metric.parts.iter().copied(), &row.values);
            object(f, row.metric.key, parts)?;
        }
        object(f, "counters", counters(metrics))?;
        let rates = zip(counters(metrics), &self.before).map(|((name, now), then)| {
            let rate = now.saturating_sub(*then) as f64 / self.interval.max(1e-9);
            (name, format!("{rate:.1}"))
        });
        object(f, "rates", rates)?;
        let gauges = single.iter().filter(|row| row.metric.kind == Kind::Gauge);
        object(f, "gauges", gauges.map(|row| (row.metric.key, row.sum())))?;
        let latency = &metrics.latency;
        let (count, sum) = (latency.count(), latency.sum);
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
    let (number, state, spare) = (carrier.number, carrier.state.word(), carrier.spare);
    let tid = carrier.tid.map_or("null".into(), |tid| tid.to_string());
    write!(
        f,
        "{{\"number\":{number},\"state\":\"{state}\",\"spare\":{spare},\"tid\":{tid},\"processor\":{}",
        carrier.processor
    )?;
    for (name, value) in carrier.iter() {
        write!(f, ",\"{name}\":{value}")?;
    }
    f.write_str("}")
}
