//! Waiting by repeated attempts, where the kernel has no event.
//!
//! For a lock on a file, or room in the queue of a Unix listener, the kernel can try or block, but
//! does not report when another attempt will succeed. So a virtual thread tries, and parks before
//! it tries again. It parks until something in this process gives it a [chance](Retry::chance), or,
//! because other processes may give chances too, for a pause that doubles from time to time.
//!
//! Pauses grow with the number of waiting threads, so that failed attempts cost at most a small
//! part of a core. Waiting threads take turns roughly in order of arrival.

use crate::blocking::parking_lot::{self, Parked};
use crate::no_suspend;
use crate::sched::safepoint::{self, Ran};
use crate::sys::{Errno, SysResult};
use crate::time::Deadline;
use crate::vthread::wait_reason::WaitReason;
use crate::vthread::wait_word::Interruptible;
use core::sync::atomic::{AtomicU32, AtomicUsize, Ordering};

const LONGEST_PAUSE_NS: u64 = 20_000_000;
/// The longest pause is this per waiting thread, if that is longer.
const PAUSE_PER_WAITER_NS: u64 = 100_000;
/// The number of threads that try again at a chance, which may suit others than the first.
const TRIES: usize = 8;

/// The threads that wait for one kind of chance. They park on its address.
pub struct Retry {
    waiting: AtomicUsize,
    /// The number of chances given while a thread waited.
    chances: AtomicU32,
    first_pause_ns: u64,
}

impl Retry {
    /// Returns a state without waiters. `first_pause_ns` is the time to wait for a chance before
    /// the second attempt.
    pub const fn new(first_pause_ns: u64) -> Retry {
        Retry {
            waiting: AtomicUsize::new(0),
            chances: AtomicU32::new(0),
            first_pause_ns,
        }
    }

    /// Lets some of the waiting threads try again.
    #[inline]
    pub fn chance(&self) {
        // Relaxed: a thread that begins to wait just now tries again after the first pause.
        if self.waiting.load(Ordering::Relaxed) > 0 {
            self.wake();
        }
    }

    /// Wakes some of the waiting threads. Does nothing in a signal handler, which may have
    /// interrupted code that holds the lock of our list or is changing a queue: the waiting threads
    /// try again soon.
    #[cold]
    fn wake(&self) {
        if no_suspend::in_handler() {
            return;
        }
        // Release: pairs with the Acquire in `wait_and_try`.
        self.chances.fetch_add(1, Ordering::Release);
        parking_lot::unpark(self.key(), TRIES, u32::MAX);
    }

    fn key(&self) -> usize {
        (&raw const *self).addr()
    }

    /// Repeats `attempt` while it returns `EAGAIN`, which is also the result after the deadline.
    /// Called on a virtual thread. An interrupt ends the wait: `ECANCELED`.
    /// After a signal's handler without `SA_RESTART`: `EINTR`.
    /// Dumps show `reason`.
    pub fn until(
        &self,
        reason: WaitReason,
        deadline: Deadline,
        interruptible: Interruptible,
        attempt: impl Fn() -> SysResult,
    ) -> SysResult {
        self.waiting.fetch_add(1, Ordering::Relaxed); // Relaxed: see `chance`.
        let result = self.wait_and_try(reason.looking(), deadline, interruptible, attempt);
        self.waiting.fetch_sub(1, Ordering::Relaxed);
        result
    }

    fn wait_and_try(
        &self,
        reason: WaitReason,
        deadline: Deadline,
        interruptible: Interruptible,
        attempt: impl Fn() -> SysResult,
    ) -> SysResult {
        let mut pause = self.first_pause_ns;
        loop {
            // Acquire: pairs with the Release in `wake`: the next attempt sees what gave the
            // chance.
            let seen = self.chances.load(Ordering::Acquire);
            let result = attempt();
            if result != Err(Errno(libc::EAGAIN)) {
                // The chance may suffice for more than one thread.
                parking_lot::unpark(self.key(), 1, u32::MAX);
                return result;
            }
            if deadline.has_passed() {
                return result;
            }
            // Relaxed: loaded again above.
            let nothing_new = || self.chances.load(Ordering::Relaxed) == seen;
            let until = Deadline::after_nanos(pause).min(deadline);
            let reason = |_| reason;
            match parking_lot::park(
                self.key(),
                u32::MAX,
                until,
                interruptible,
                reason,
                nothing_new,
            ) {
                Parked::Interrupted => return Err(super::INTERRUPTED),
                Parked::TimedOut => pause = (2 * pause).min(self.longest_pause()),
                Parked::SafePoint => {
                    if safepoint::run_pending() == Ran::Interrupting {
                        return Err(Errno(libc::EINTR));
                    }
                }
                Parked::Woken | Parked::Invalid => {}
            }
        }
    }

    fn longest_pause(&self) -> u64 {
        // Relaxed: a rough number.
        let waiting = self.waiting.load(Ordering::Relaxed) as u64;
        LONGEST_PAUSE_NS.max(waiting * PAUSE_PER_WAITER_NS)
    }
}
