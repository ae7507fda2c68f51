//! What has happened between two samples.

use std::collections::BTreeMap;

use super::sample::{CarrierSample, Counters, Latency, Sample};

/// The time between two samples.
#[derive(Clone, Copy, Debug)]
pub struct Window<'a> {
    before: &'a Sample,
    after: &'a Sample,
}

impl<'a> Window<'a> {
    /// Returns the time between two samples.
    pub fn between(before: &'a Sample, after: &'a Sample) -> Window<'a> {
        Window { before, after }
    }

    /// Returns how long it is.
    pub fn seconds(&self) -> f64 {
        (self.after.elapsed - self.before.elapsed).max(0.0)
    }

    /// Returns how often per second something has happened.
    pub fn rate(&self, count: impl Fn(&Counters) -> u64) -> f64 {
        self.per_second(count(&self.before.counters), count(&self.after.counters))
    }

    /// Returns how often per second something has happened on a carrier with this number now: on
    /// its processor, since a carrier may have had another before.
    pub fn carrier_rate(&self, number: u32, count: impl Fn(&CarrierSample) -> u64) -> f64 {
        let Some(after) = self.after.carriers.iter().find(|it| it.number == number) else {
            return 0.0;
        };
        let mut before = self.before.carriers.iter();
        let before = before.find(|it| it.processor == after.processor);
        self.per_second(before.map_or(0, &count), count(after))
    }

    /// Returns how many processors the process has kept busy.
    pub fn cpu(&self) -> f64 {
        match self.seconds() {
            0.0 => 0.0,
            seconds => (self.after.cpu_seconds - self.before.cpu_seconds).max(0.0) / seconds,
        }
    }

    /// Returns how long woken threads have waited for a carrier in this time.
    pub fn latency(&self) -> Latency {
        let before: BTreeMap<_, _> = self.before.latency.buckets.iter().copied().collect();
        let (mut buckets, mut all) = (Vec::new(), 0);
        for &(end, count) in &self.after.latency.buckets {
            let new = count.saturating_sub(before.get(&end).copied().unwrap_or(0));
            if new > 0 {
                buckets.push((end, new));
                all += new;
            }
        }
        let (earlier, later) = (&self.before.latency, &self.after.latency);
        Latency {
            count: all,
            sum_ns: later.sum_ns.saturating_sub(earlier.sum_ns),
            buckets,
        }
    }

    fn per_second(&self, before: u64, after: u64) -> f64 {
        match self.seconds() {
            0.0 => 0.0,
            seconds => after.saturating_sub(before) as f64 / seconds,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::sample::tests::LINE;
    use super::*;
    use std::time::Duration;

    #[test]
    fn rates_are_per_second_of_the_time_that_passed() {
        let before = Sample::parse(LINE).unwrap();
        let mut after = Sample {
            elapsed: 2.0,
            cpu_seconds: 3.0,
            ..before.clone()
        };
        after.counters.mounts += 100;
        after.carriers[0].mounts += 50;
        after.latency.buckets[1].1 += 7;
        after.latency.sum_ns += 70;
        let window = Window::between(&before, &after);
        assert_eq!(window.rate(|it| it.mounts), 50.0);
        assert_eq!(window.rate(|it| it.started), 0.0);
        assert_eq!(window.carrier_rate(0, |it| it.mounts), 25.0);
        assert_eq!(window.carrier_rate(9, |it| it.mounts), 0.0);
        assert_eq!(window.cpu(), 1.5);
        let latency = window.latency();
        assert_eq!((latency.count, latency.sum_ns), (7, 70));
        assert_eq!(latency.quantile(0.5), Some(Duration::from_nanos(4096)));
    }

    #[test]
    fn what_a_processor_counts_goes_with_it_to_another_carrier() {
        let before = Sample::parse(LINE).unwrap();
        let mut after = Sample {
            elapsed: 1.0,
            ..before.clone()
        };
        after.carriers[0].number = 1;
        after.carriers[1].number = 0;
        after.carriers[0].mounts += 50;
        let window = Window::between(&before, &after);
        assert_eq!(window.carrier_rate(1, |it| it.mounts), 50.0);
        assert_eq!(window.carrier_rate(0, |it| it.mounts), 0.0);
    }

    #[test]
    fn no_time_has_no_rates() {
        let sample = Sample::parse(LINE).unwrap();
        let window = Window::between(&sample, &sample);
        assert_eq!((window.rate(|it| it.mounts), window.cpu()), (0.0, 0.0));
        assert_eq!(window.latency().quantile(0.99), None);
    }

    #[test]
    fn a_carrier_that_is_new_has_mounted_since_it_was_there() {
        let mut before = Sample::parse(LINE).unwrap();
        let after = Sample {
            elapsed: 1.0,
            ..before.clone()
        };
        before.carriers.pop();
        let window = Window::between(&before, &after);
        assert_eq!(window.carrier_rate(1, |it| it.mounts), 11.0);
    }
}
