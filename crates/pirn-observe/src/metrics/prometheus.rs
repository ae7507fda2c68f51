//! The text format of Prometheus.
//!
//! Names, units and suffixes are as `promtool check metrics` wants them. No label has as many
//! values as there are threads.

use super::Latency;
use super::snapshot::{CarrierState, Metrics};
use core::fmt::{self, Display, Formatter};

/// The ends of the ranges of a histogram, as powers of two of nanoseconds: 256 ns to 34 s.
const POWERS: core::ops::RangeInclusive<u32> = 8..=35;

/// The values of one metric, each with its label, if it has one.
type Values<'a> = &'a [(&'a str, u64)];

impl Display for Metrics {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.write_threads(f)?;
        self.write_carriers(f)?;
        self.write_resources(f)?;
        let help = "Memory of virtual threads and of the process, by kind.";
        gauge(f, "memory_bytes", help, "kind", &self.memory.by_kind())?;
        header(f, "build_info", "gauge", "The version of Pirn.")?;
        let version = env!("CARGO_PKG_VERSION");
        writeln!(f, "pirn_build_info{{version=\"{version}\"}} 1")
    }
}

impl Metrics {
    fn write_threads(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let threads = &self.threads;
        let states = [
            ("new", threads.new),
            ("runnable", threads.runnable),
            ("running", threads.running),
            ("waiting", threads.waiting),
        ];
        gauge(f, "threads", "Virtual threads, by state.", "state", &states)?;
        total(
            f,
            "threads_started",
            "Virtual threads started.",
            self.started,
        )?;
        total(f, "threads_ended", "Virtual threads ended.", self.ended)?;
        total(
            f,
            "threads_panicked",
            "Virtual threads that panicked.",
            self.panicked,
        )?;
        total(
            f,
            "interrupts",
            "Interrupts of virtual threads.",
            self.interrupts,
        )?;
        let (help, kinds) = (
            "Unmounts of threads that wait, by what for.",
            self.parks.by_kind(),
        );
        counter(f, "parks", help, "kind", &Vec::from_iter(kinds))?;
        total(f, "wakes", "Parked threads made runnable.", self.wakes)?;
        total(f, "mounts", "Mounts of threads on carriers.", self.mounts)?;
        total(f, "preemptions", "Threads preempted.", self.preemptions)?;
        let help = "Time from runnable to running, of one start or wake in 64.";
        histogram(f, "schedule_latency_seconds", help, &self.schedule_latency)
    }

    fn write_carriers(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let states = CarrierState::ALL.map(|state| {
            let count = self
                .carriers
                .iter()
                .filter(|carrier| carrier.state == state);
            (state.name(), count.count() as u64)
        });
        gauge(
            f,
            "carriers",
            "Carriers, by what they do.",
            "state",
            &states,
        )?;
        let help = "Virtual threads that may run at the same time.";
        number(f, "parallelism", help, self.parallelism)?;
        let help = "Carriers in use beyond the parallelism.";
        number(f, "spare_carriers", help, self.spare_carriers)?;
        total(
            f,
            "steals",
            "Takings of threads from another carrier's queue.",
            self.steals,
        )?;
        number(
            f,
            "run_queue_threads",
            "Runnable threads in the queues.",
            self.run_queue,
        )?;
        let episodes = self.carriers.iter().map(|carrier| carrier.stuck_episodes);
        let help = "How often a carrier was stuck in one thread.";
        total(f, "carrier_stuck_episodes", help, episodes.sum())?;
        let stuck = self
            .carriers
            .iter()
            .map(|carrier| carrier.stuck.as_nanos() as u64);
        let help = "For how long carriers were stuck.";
        header(f, "carrier_stuck_seconds_total", "counter", help)?;
        writeln!(
            f,
            "pirn_carrier_stuck_seconds_total {}",
            Seconds(stuck.sum())
        )
    }

    fn write_resources(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let calls = &self.offloaded_calls;
        let calls = [("bounded", calls.bounded), ("dedicated", calls.dedicated)];
        let help = "Calls made by platform threads, by kind.";
        counter(f, "offloaded_calls", help, "kind", &calls)?;
        let slots = &self.stack_slots;
        let slots = [
            ("used", slots.used),
            ("cached", slots.cached),
            ("free", slots.free),
            ("closed", slots.closed),
        ];
        let help = "Platform threads for such calls.";
        number(f, "offload_threads", help, self.offload_threads)?;
        number(f, "timers", "Armed timers.", self.timers)?;
        number(
            f,
            "descriptors",
            "Descriptors registered with epoll.",
            self.descriptors,
        )?;
        number(f, "scopes", "Open scopes.", self.scopes)?;
        gauge(
            f,
            "stack_slots",
            "Slots of stacks, by state.",
            "state",
            &slots,
        )?;
        let help = "Events that the recorder has lost.";
        total(f, "events_dropped", help, self.events_dropped)?;
        let help = "Diagnostics that were found, by name.";
        counter(f, "diagnostics", help, "kind", &self.diagnostics)
    }
}

/// Writes a counter without a label.
fn total(f: &mut Formatter<'_>, name: &str, help: &str, value: u64) -> fmt::Result {
    counter(f, name, help, "", &[("", value)])
}

/// Writes a gauge without a label.
fn number(f: &mut Formatter<'_>, name: &str, help: &str, value: usize) -> fmt::Result {
    gauge(f, name, help, "", &[("", value as u64)])
}

fn header(f: &mut Formatter<'_>, name: &str, kind: &str, help: &str) -> fmt::Result {
    writeln!(f, "# HELP pirn_{name} {help}\n# TYPE pirn_{name} {kind}")
}

fn gauge(
    f: &mut Formatter<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: Values,
) -> fmt::Result {
    header(f, name, "gauge", help)?;
    write_values(f, name, "", label, values)
}

fn counter(
    f: &mut Formatter<'_>,
    name: &str,
    help: &str,
    label: &str,
    values: Values,
) -> fmt::Result {
    header(f, &format!("{name}_total"), "counter", help)?;
    write_values(f, name, "_total", label, values)
}

fn write_values(
    f: &mut Formatter<'_>,
    name: &str,
    suffix: &str,
    label: &str,
    values: Values,
) -> fmt::Result {
    values.iter().try_for_each(|(kind, value)| match label {
        "" => writeln!(f, "pirn_{name}{suffix} {value}"),
        _ => writeln!(f, "pirn_{name}{suffix}{{{label}=\"{kind}\"}} {value}"),
    })
}

fn histogram(f: &mut Formatter<'_>, name: &str, help: &str, times: &Latency) -> fmt::Result {
    header(f, name, "histogram", help)?;
    for power in POWERS {
        let (end, count) = (Seconds(1 << power), times.up_to(1 << power));
        writeln!(f, "pirn_{name}_bucket{{le=\"{end}\"}} {count}")?;
    }
    let (count, sum) = (times.count(), times.sum().as_nanos() as u64);
    writeln!(f, "pirn_{name}_bucket{{le=\"+Inf\"}} {count}")?;
    writeln!(f, "pirn_{name}_sum {}", Seconds(sum))?;
    writeln!(f, "pirn_{name}_count {count}")
}

/// Nanoseconds, written as seconds.
struct Seconds(u64);

impl Display for Seconds {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let (seconds, nanos) = (self.0 / 1_000_000_000, self.0 % 1_000_000_000);
        if nanos == 0 {
            return write!(f, "{seconds}");
        }
        let text = format!("{nanos:09}");
        write!(f, "{seconds}.{}", text.trim_end_matches('0'))
    }
}
