//! Times of stamps.

use crate::recording::{Clocks, Recording};

/// The bits of a stamp in a slot.
const BITS: u32 = 56;
/// Events that share a stamp were at most this far apart, in the recorder's clock.
const FAST: u64 = 512;

/// Makes nanoseconds of stamps.
pub(crate) struct Stamps {
    first: Clocks,
    /// Nanoseconds per tick.
    rate: f64,
}

impl Stamps {
    /// Learns the rate from the recording's clocks.
    pub(crate) fn new(recording: &Recording) -> Stamps {
        let first = recording.clocks.first().copied().unwrap_or_default();
        let last = recording.clocks.last().copied().unwrap_or_default();
        let ticks = last.stamp.saturating_sub(first.stamp);
        let nanos = last.monotonic.saturating_sub(first.monotonic);
        let rate = match recording.counter && ticks > 0 {
            true => nanos as f64 / ticks as f64,
            false => 1.0,
        };
        Stamps { first, rate }
    }

    /// Returns the stamp of the first moment.
    pub(crate) fn first(&self) -> u64 {
        self.first.stamp
    }

    /// Returns the whole stamp of a slot's first word.
    pub(crate) fn whole(&self, word: u64) -> u64 {
        let low = word >> 8;
        // The nearest to the first clock: the recorder has not been on for years.
        let distance = low.wrapping_sub(self.first.stamp) << (64 - BITS);
        self.first
            .stamp
            .wrapping_add_signed(distance as i64 >> (64 - BITS))
    }

    /// Returns the time of a stamp, in nanoseconds of the monotonic clock.
    pub(crate) fn nanos(&self, stamp: u64) -> u64 {
        let ticks = stamp.wrapping_sub(self.first.stamp) as i64;
        self.first
            .monotonic
            .saturating_add_signed((ticks as f64 * self.rate) as i64)
    }

    /// Returns how far apart `count` events with one stamp are taken to be, if the next one is this
    /// far away.
    pub(crate) fn step(&self, until_next: u64, count: u64) -> u64 {
        (until_next / count.max(1)).min(FAST / 4)
    }
}
