//! What the next mount of a thread has to do besides mounting it.
//!
//! Nearly always nothing, and a mount looks at this word in any case, because a new thread needs a
//! stack. So timing some threads ([`latency`](crate::sched::latency)) costs the others nothing.
//!
//! ```text
//!   31                              1   0
//!   +-------------------------------+---+
//!   | time at which it became       | 0 |   0 in all: nothing; 1: it needs a stack
//!   | runnable, in units of 128 ns  |   |   a time, and it has no stack: both
//!   +-------------------------------+---+
//! ```

/// See the module's documentation.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct AtMount(u32);

/// The binary logarithm of the unit of time, in nanoseconds.
const UNIT: u32 = 7;

impl AtMount {
    pub(super) const NOTHING: AtMount = AtMount(0);
    /// Of a new thread.
    pub(super) const STACK: AtMount = AtMount(1);

    /// Returns the duty to find out for how long the thread has been runnable, when it became so
    /// at the time `now`.
    pub(crate) fn timed(now: u64) -> AtMount {
        match ((now >> UNIT) as u32) << 1 {
            0 => AtMount(u32::MAX - 1), // a unit earlier: 0 has a meaning of its own
            time => AtMount(time),
        }
    }

    /// Returns whether there is nothing to do.
    #[inline(always)]
    pub(super) fn is_nothing(self) -> bool {
        self.0 == 0
    }

    /// Returns for how many nanoseconds the thread has been runnable at the time `now()`, if that
    /// is to be found out: 0 if that is before it became so, by another processor's clock, or more
    /// than two minutes after.
    pub(super) fn runnable_for(self, now: impl FnOnce() -> u64) -> Option<u64> {
        (self.0 > 1).then(|| {
            let since = (((now() >> UNIT) as u32) << 1).wrapping_sub(self.0);
            u64::try_from(since as i32 >> 1).unwrap_or(0) << UNIT
        })
    }
}

#[cfg(test)]
mod tests;
