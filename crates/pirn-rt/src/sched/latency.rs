//! For how long threads are runnable before they run: a histogram.
//!
//! One wake or start out of 64 is timed. The time is noted in the thread's record
//! ([`AtMount`](crate::vthread::state::AtMount)) and compared with the clock when it is mounted.
//!
//! The buckets are log-linear: four per power of two, so a value is known to a quarter of it, at
//! worst. A bucket has its upper bound, but not its lower one.
//!
//! ```text
//!   index      0        1            2            3            4            5             ...  120
//!   ns     .. 256 | .. 320     | .. 384     | .. 448     | .. 512     | .. 640      | ... | all above 2^37 * 7/4
//! ```

use super::counters::Counter;

/// The binary logarithm of the first bucket's upper bound, in nanoseconds.
const FIRST: u32 = 8;
/// The binary logarithm of where the last buckets begin: 137 s.
const LAST: u32 = 37;
/// The binary logarithm of the number of buckets per power of two.
const PARTS: u32 = 2;

/// The number of buckets.
pub const BUCKETS: usize = 1 + ((LAST + 1 - FIRST) << PARTS) as usize;

/// A histogram that one thread writes.
pub struct Latencies {
    counts: [Counter; BUCKETS],
    /// The sum of all values, in nanoseconds.
    sum: Counter,
}

impl Default for Latencies {
    fn default() -> Latencies {
        Latencies {
            counts: [const { Counter::new() }; BUCKETS],
            sum: Counter::new(),
        }
    }
}

/// Returns the bucket of a value.
fn bucket_of(nanos: u64) -> usize {
    let below = nanos.saturating_sub(1);
    let Some(power) = below.checked_ilog2().filter(|&power| power >= FIRST) else {
        return 0;
    };
    let part = (below >> (power - PARTS)) as usize & ((1 << PARTS) - 1);
    let bucket = 1 + (((power - FIRST) as usize) << PARTS) + part;
    bucket.min(BUCKETS - 1)
}

/// Returns the largest value of a bucket, in nanoseconds; `u64::MAX` for the last one.
pub fn upper_bound(bucket: usize) -> u64 {
    match bucket {
        0 => 1 << FIRST,
        _ if bucket >= BUCKETS - 1 => u64::MAX,
        _ => {
            let (power, part) = ((bucket - 1) >> PARTS, (bucket - 1) % (1 << PARTS));
            let power = FIRST + power as u32;
            (1 << power) + ((part as u64 + 1) << (power - PARTS))
        }
    }
}

impl Latencies {
    /// Adds a value, for the only thread that adds any.
    pub(crate) fn add(&self, nanos: u64) {
        self.counts[bucket_of(nanos)].add(1);
        self.sum.add(nanos);
    }

    /// Adds a value, for one of several threads.
    pub(crate) fn add_shared(&self, nanos: u64) {
        self.counts[bucket_of(nanos)].add_shared(1);
        self.sum.add_shared(nanos);
    }

    /// Adds what is in the buckets to `counts`, one for each. Returns the sum of all values.
    pub fn add_to(&self, counts: &mut [u64; BUCKETS]) -> u64 {
        for (total, count) in counts.iter_mut().zip(&self.counts) {
            *total += count.get();
        }
        self.sum.get()
    }
}

#[cfg(test)]
mod tests;
