//! One line of the server's command `watch`: what the process had counted at one moment.

#![allow(missing_docs, reason = "`pirn metrics` prints what each counts")]

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};

/// What the process had counted at one moment: `crates/pirn-observe/src/metrics/export.rs` writes
/// the line. What a process of another version does not say is 0 here.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
#[serde(default)]
pub struct Sample {
    /// In nanoseconds since 1970.
    pub time: u64,
    /// The seconds since the line before.
    pub interval: f64,
    pub threads: Threads,
    pub counters: Counters,
    /// How often threads have begun to wait, by what they wait for.
    pub parks: BTreeMap<String, u64>,
    pub gauges: Gauges,
    pub stack_slots: BTreeMap<String, u64>,
    /// Bytes, by their use.
    pub memory: BTreeMap<String, u64>,
    pub latency: Latency,
    pub carriers: Vec<CarrierSample>,
    /// The seconds since the first sample: they only grow, whatever happens to the clock.
    pub elapsed: f64,
    /// Processor time that the process has had, as the kernel counts it.
    pub cpu_seconds: f64,
    /// Memory that the process has, as the kernel counts it, in bytes.
    pub resident: u64,
}

/// Virtual threads by state.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Threads {
    pub new: u64,
    pub runnable: u64,
    pub running: u64,
    pub waiting: u64,
}

impl Threads {
    /// Returns how many there are.
    pub fn all(&self) -> u64 {
        let states = [self.new, self.runnable, self.running, self.waiting];
        states.into_iter().fold(0, u64::saturating_add)
    }
}

/// What has happened since the process was started, how often.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Counters {
    pub started: u64,
    pub ended: u64,
    pub panicked: u64,
    pub interrupts: u64,
    pub parks: u64,
    pub wakes: u64,
    pub mounts: u64,
    pub steals: u64,
    pub preemptions: u64,
    pub offloaded_calls: u64,
    pub stuck_episodes: u64,
    pub events_dropped: u64,
}

/// What there is at the moment.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Gauges {
    pub parallelism: u64,
    pub spare_carriers: u64,
    pub run_queue: u64,
    pub offload_threads: u64,
    pub timers: u64,
    pub descriptors: u64,
    pub scopes: u64,
}

/// How long woken threads have waited for a carrier.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct Latency {
    pub count: u64,
    pub sum_ns: u64,
    /// The upper end of each range that is not empty, in nanoseconds, and how many times were in
    /// it. The last range has no end.
    pub buckets: Vec<(Option<u64>, u64)>,
}

impl Latency {
    /// Returns a time that a part of `quantile` (from 0 to 1) did not exceed, rounded up to the end
    /// of its range; `Duration::MAX` beyond the last end, `None` if nothing was measured.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let all = self.buckets.iter().map(|(_, count)| count).sum::<u64>();
        let rank = ((quantile.clamp(0.0, 1.0) * all as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let found = self.buckets.iter().find(|(_, count)| {
            seen += count;
            seen >= rank
        });
        found.map(|(end, _)| end.map_or(Duration::MAX, Duration::from_nanos))
    }
}

/// What one carrier had counted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(default)]
pub struct CarrierSample {
    pub number: u32,
    /// The processor that it holds, by which is counted.
    pub processor: u32,
    /// The operating system's number of the platform thread.
    pub tid: Option<u32>,
    /// `running`, `searching`, `sleeping` or `stuck`.
    pub state: String,
    /// Whether it was added because others were stuck.
    pub spare: bool,
    pub run_queue: u64,
    pub mounts: u64,
    pub parks: u64,
    pub wakes: u64,
    pub started: u64,
    pub ended: u64,
    pub steals: u64,
    pub preemptions: u64,
    pub stuck_episodes: u64,
    pub stuck_ns: u64,
}

impl Sample {
    /// Reads a line.
    pub fn parse(line: &str) -> Result<Sample, String> {
        serde_json::from_str(line).map_err(|error| {
            let begin: String = line.chars().take(40).collect();
            format!("a line is not a sample: {error}: {begin:?}")
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A line as a process writes it, shortened, with a member that this version does not know.
    pub const LINE: &str = r#"{"time":1790000000000000000,"interval":1.000123,
        "threads":{"new":1,"runnable":2,"running":1,"waiting":9},
        "counters":{"started":20,"ended":7,"panicked":0,"mounts":41,"wakes":30,"parks":33},
        "rates":{"started":0.5},"parks":{"read":3,"futex":2},"colour":"red",
        "gauges":{"parallelism":2,"run_queue":4},"stack_slots":{"used":9,"free":1},
        "memory":{"stacks_committed":4096},
        "latency":{"count":100,"sum_ns":8000,"buckets":[[2048,50],[4096,49],[null,1]]},
        "carriers":[{"number":0,"state":"running","spare":false,"tid":17,"run_queue":4,"mounts":30},
            {"number":1,"state":"sleeping","spare":true,"tid":null,"processor":1,"mounts":11}]}"#;

    #[test]
    fn a_line_is_read() {
        let sample = Sample::parse(LINE).unwrap();
        assert_eq!(sample.threads.all(), 13);
        assert_eq!((sample.counters.mounts, sample.counters.steals), (41, 0));
        assert_eq!(sample.gauges.parallelism, 2);
        assert_eq!(sample.memory["stacks_committed"], 4096);
        let carriers: Vec<_> = sample
            .carriers
            .iter()
            .map(|it| (it.tid, it.spare))
            .collect();
        assert_eq!(carriers, [(Some(17), false), (None, true)]);
        let again = serde_json::to_string(&sample).unwrap();
        assert_eq!(Sample::parse(&again).unwrap(), sample);
        assert!(Sample::parse("{\"time\":-1}").is_err());
        assert!(Sample::parse("").is_err());
    }

    #[test]
    fn quantiles_are_ends_of_ranges() {
        let latency = Sample::parse(LINE).unwrap().latency;
        assert_eq!(latency.quantile(0.5), Some(Duration::from_nanos(2048)));
        assert_eq!(latency.quantile(0.99), Some(Duration::from_nanos(4096)));
        assert_eq!(latency.quantile(1.0), Some(Duration::MAX));
        assert_eq!(Latency::default().quantile(0.5), None);
    }
}
