//! Counters and rates at one moment: a point of each curve.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;
use serde_json::Value;

use pirn_live::{CarrierSample, Latency, Sample, Window};

/// Latencies come from this many samples: one alone has few.
const LATENCY_SAMPLES: usize = 10;

/// What the page is told about one sample.
#[derive(Serialize)]
pub struct Point {
    /// In nanoseconds since 1970. JavaScript rounds it to a fraction of a microsecond.
    pub time: u64,
    threads: Value,
    rates: Rates,
    /// How long woken threads waited for a carrier, in nanoseconds: one in two, and 99 of 100, did
    /// not wait longer.
    p50: Option<u64>,
    p99: Option<u64>,
    /// How many processors the process kept busy.
    cpu: f64,
    resident: u64,
    memory: BTreeMap<String, u64>,
    gauges: Value,
    stack_slots: BTreeMap<String, u64>,
    panicked: u64,
    carriers: Vec<Carrier>,
}

/// Numbers per second.
#[derive(Serialize)]
struct Rates {
    started: f64,
    ended: f64,
    mounts: f64,
    parks: f64,
    wakes: f64,
    steals: f64,
    preemptions: f64,
    offloaded: f64,
}

#[derive(Serialize)]
struct Carrier {
    number: u32,
    tid: Option<u32>,
    state: String,
    spare: bool,
    queue: u64,
    mounts: u64,
    /// Per second.
    mount_rate: f64,
    steals: u64,
    preemptions: u64,
    stuck: u64,
    stuck_ns: u64,
}

/// Returns the points of samples that are newer than a time, of a history from old to new.
pub fn newer(history: &[Arc<Sample>], time: u64) -> Vec<Point> {
    let first = history.partition_point(|sample| sample.time <= time);
    (first..history.len())
        .map(|index| {
            let sample = &history[index];
            let before = &history[index.saturating_sub(1)];
            let long_before = &history[index.saturating_sub(LATENCY_SAMPLES)];
            let latency = Window::between(long_before, sample).latency();
            point(sample, Window::between(before, sample), &latency)
        })
        .collect()
}

fn point(sample: &Sample, window: Window<'_>, latency: &Latency) -> Point {
    Point {
        time: sample.time,
        threads: serde_json::to_value(&sample.threads).unwrap_or_default(),
        rates: Rates {
            started: window.rate(|it| it.started),
            ended: window.rate(|it| it.ended),
            mounts: window.rate(|it| it.mounts),
            parks: window.rate(|it| it.parks),
            wakes: window.rate(|it| it.wakes),
            steals: window.rate(|it| it.steals),
            preemptions: window.rate(|it| it.preemptions),
            offloaded: window.rate(|it| it.offloaded_calls),
        },
        p50: quantile(latency, 0.5),
        p99: quantile(latency, 0.99),
        cpu: window.cpu(),
        resident: sample.resident,
        memory: sample.memory.clone(),
        gauges: serde_json::to_value(&sample.gauges).unwrap_or_default(),
        stack_slots: sample.stack_slots.clone(),
        panicked: sample.counters.panicked,
        carriers: sample
            .carriers
            .iter()
            .map(|it| carrier(it, window))
            .collect(),
    }
}

fn carrier(carrier: &CarrierSample, window: Window<'_>) -> Carrier {
    Carrier {
        number: carrier.number,
        tid: carrier.tid,
        state: carrier.state.clone(),
        spare: carrier.spare,
        queue: carrier.run_queue,
        mounts: carrier.mounts,
        mount_rate: window.carrier_rate(carrier.number, |it| it.mounts),
        steals: carrier.steals,
        preemptions: carrier.preemptions,
        stuck: carrier.stuck_episodes,
        stuck_ns: carrier.stuck_ns,
    }
}

/// Returns a quantile in nanoseconds. Beyond the last range it is the end of the one before.
fn quantile(latency: &Latency, quantile: f64) -> Option<u64> {
    match latency.quantile(quantile)? {
        Duration::MAX => latency.buckets.iter().filter_map(|(end, _)| *end).max(),
        time => u64::try_from(time.as_nanos()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(time: u64, mounts: u64, bucket: (Option<u64>, u64)) -> Arc<Sample> {
        let mut sample = Sample {
            time,
            elapsed: time as f64,
            ..Sample::default()
        };
        sample.counters.mounts = mounts;
        sample.latency.buckets = vec![(Some(10), 1), bucket];
        Arc::new(sample)
    }

    #[test]
    fn only_what_is_new_is_told() {
        let history = [
            sample(1, 100, (Some(20), 0)),
            sample(2, 150, (Some(20), 8)),
            sample(4, 150, (Some(20), 9)),
        ];
        let all = newer(&history, 0);
        let rates: Vec<f64> = all.iter().map(|point| point.rates.mounts).collect();
        assert_eq!(rates, [0.0, 50.0, 0.0]);
        assert_eq!((all[0].p50, all[1].p50), (None, Some(20)));
        let new = newer(&history, 2);
        assert_eq!((new.len(), new[0].time), (1, 4));
        assert!(newer(&history, 4).is_empty());
        assert!(newer(&[], 0).is_empty());
    }

    #[test]
    fn a_latency_beyond_the_last_range_has_a_number() {
        let history = [sample(1, 0, (None, 0)), sample(2, 0, (None, 5))];
        assert_eq!(newer(&history, 1)[0].p99, None, "no range has an end");
        let mut latency = history[1].latency.clone();
        latency.buckets[0].1 = 0;
        assert_eq!(quantile(&latency, 0.99), Some(10));
    }
}
