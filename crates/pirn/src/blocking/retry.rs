//! Waiting for what the kernel has no event for: trying again and again.
//!
//! A lock on a file, room in the queue of a Unix listener: the kernel can be asked to try, or to
//! block, but not to tell when another attempt will do. So a virtual thread tries, and parks before
//! it tries again: until something happens in this process that gives it a [chance](Retry::chance),
//! or, because other processes do such things too, for a pause that doubles from time to time.
//!
//! The more wait, the longer are the pauses, so that attempts in vain cost a small part of a core
//! at most. Those that wait take turns roughly in the order in which they came.

use super::parking_lot::{self, Parked};
use crate::sys::{Errno, SysResult};
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const LONGEST_PAUSE_NS: u64 = 20_000_000;
/// The longest pause per thread that waits, if that is longer.
const PAUSE_PER_WAITER_NS: u64 = 100_000;
/// How many try again at a chance: it may be a chance for others than the first.
const TRIES: usize = 8;

/// Those that wait for one kind of thing. The address is what they park on.
pub(crate) struct Retry {
    waiting: AtomicUsize,
    /// Counts the chances while somebody waits.
    chances: AtomicU32,
    first_pause_ns: u64,
}

impl Retry {
    /// Nobody waits. `first_pause_ns`: how long to wait for a chance before the second attempt.
    pub(crate) const fn new(first_pause_ns: u64) -> Retry {
        Retry {
            waiting: AtomicUsize::new(0),
            chances: AtomicU32::new(0),
            first_pause_ns,
        }
    }

    /// Lets some of those that wait try again.
    #[inline]
    pub(crate) fn chance(&self) {
        // Relaxed: who begins to wait just now tries again after the first pause.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    #[cold]
    fn wake(&self) {
        // Release: pairs with the Acquire in `wait_and_try`.
        self.chances.fetch_add(1, Ordering::Release);
        parking_lot::unpark(self.key(), TRIES, u32::MAX);
    }

    fn key(&self) -> usize {
        (&raw const *self).addr()
    }

    /// Repeats `attempt` while it says `EAGAIN`, which is the result when the deadline has passed.
    /// On a virtual thread. A thread that hears of an interrupt does not wait: `ECANCELED`.
    pub(crate) fn until(
        &self,
        deadline: Deadline,
        hearing: Option<Hearing>,
        attempt: impl Fn() -> SysResult,
    ) -> SysResult {
        self.waiting.fetch_add(1, Ordering::Relaxed); // Relaxed: see `chance`.
        let result = self.wait_and_try(deadline, hearing, attempt);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    fn wait_and_try(
        &self,
        deadline: Deadline,
        hearing: Option<Hearing>,
        attempt: impl Fn() -> SysResult,
    ) -> SysResult {
        let mut pause = self.first_pause_ns;
        loop {
            // Acquire: pairs with the Release in `wake`: what is tried after it comes after what
            // gave the chance.
            let seen = self.chances.load(Ordering::Acquire);
            let result = attempt();
            if result != Err(Errno(libc::EAGAIN)) {
                // What there was a chance for may leave room for more.
                parking_lot::unpark(self.key(), 1, u32::MAX);
                return result;
            }
            if deadline.has_passed() {
                return result;
            }
            // Relaxed: loaded again above.
            let nothing_new = || self.chances.load(Ordering::Relaxed) == seen;
            let until = Deadline::after_nanos(pause).min(deadline);
            match parking_lot::park(self.key(), u32::MAX, until, hearing, nothing_new) {
                Parked::Interrupted => return Err(super::INTERRUPTED),
                Parked::TimedOut => pause = (2 * pause).min(self.longest_pause()),
                Parked::Woken | Parked::Invalid => {}
            }
        }
    }

    fn longest_pause(&self) -> u64 {
        // Relaxed: a measure.
        let waiting = self.waiting.load(Ordering::Relaxed) as u64;
        LONGEST_PAUSE_NS.max(waiting * PAUSE_PER_WAITER_NS)
    }
}
