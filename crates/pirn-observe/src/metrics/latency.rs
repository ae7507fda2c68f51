//! A histogram of times.

use pirn_rt::sched::counters::Counters;
use pirn_rt::sched::latency::{BUCKETS, upper_bound};
use std::time::Duration;

/// A histogram of times: how many there were in which range. A time is known to a quarter of it.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    /// One number per bucket, or none.
    counts: Vec<u64>,
    sum: u64,
}

impl Latency {
    /// Adds up what has been counted.
    pub(super) fn of<'a>(counters: impl Iterator<Item = &'a Counters>) -> Latency {
        let mut counts = [0; BUCKETS];
        let sums = counters.map(|counters| counters.latencies.add_to(&mut counts));
        let sum = sums.fold(0, u64::wrapping_add);
        Latency {
            counts: counts.into(),
            sum,
        }
    }

    /// Returns how many times were measured.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Returns the sum of the measured times.
    pub fn sum(&self) -> Duration {
        Duration::from_nanos(self.sum)
    }

    /// Returns a time that a part of `quantile` (from 0 to 1) of the measured times did not exceed,
    /// rounded up to the end of its range; `None` if none were measured.
    pub fn quantile(&self, quantile: f64) -> Option<Duration> {
        let all = self.count();
        let rank = ((quantile.clamp(0.0, 1.0) * all as f64).ceil() as u64).max(1);
        let mut seen = 0;
        let place = self.counts.iter().position(|count| {
            seen += count;
            seen >= rank
        });
        place.map(|bucket| Duration::from_nanos(upper_bound(bucket)))
    }

    /// Returns the ranges in which there are times, from the shortest on: the upper end of each,
    /// and how many times were in it. The last range has no end: that is `Duration::MAX`.
    pub fn ranges(&self) -> impl Iterator<Item = (Duration, u64)> + '_ {
        let counts = self.counts.iter().copied().enumerate();
        counts
            .filter(|&(_, count)| count > 0)
            .map(|(bucket, count)| {
                let end = match upper_bound(bucket) {
                    u64::MAX => Duration::MAX,
                    nanos => Duration::from_nanos(nanos),
                };
                (end, count)
            })
    }

    /// Returns how many times did not exceed `nanos`, which is the end of a range.
    pub(super) fn up_to(&self, nanos: u64) -> u64 {
        let counts = self.counts.iter().enumerate();
        let within = counts.filter(|&(bucket, _)| upper_bound(bucket) <= nanos);
        within.map(|(_, count)| count).sum()
    }
}
