//! Time: limits of waits, and timers.

mod sending;
pub(crate) mod timers;

#[doc(no_inline)]
pub use pirn::scope::{deadline, with_deadline};
pub use sending::{Period, every, every_after, send_after, send_at};
pub use timers::TimerHandle;

use crate::error::{AskError, Refusal};
use core::time::Duration;
use pirn::thread::{self, Interrupted, Parker};
use std::time::Instant;

/// The time until which a thread waits, or never.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Limit(Option<Instant>);

/// Why a wait ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    TimedOut,
    Interrupted,
}

impl From<Late> for Refusal {
    fn from(late: Late) -> Refusal {
        match late {
            Late::TimedOut => Refusal::TimedOut,
            Late::Interrupted => Refusal::Interrupted,
        }
    }
}

impl From<Late> for AskError {
    fn from(late: Late) -> AskError {
        Refusal::from(late).into()
    }
}

impl Limit {
    pub(crate) const NEVER: Limit = Limit(None);

    pub(crate) fn at(instant: Instant) -> Limit {
        Limit(Some(instant))
    }

    /// A time too far away for an `Instant` is never.
    pub(crate) fn after(timeout: Duration) -> Limit {
        Limit(Instant::now().checked_add(timeout))
    }

    pub(crate) fn instant(self) -> Option<Instant> {
        self.0
    }

    /// Returns the earlier one.
    pub(crate) fn min(self, other: Limit) -> Limit {
        match (self.0, other.0) {
            (Some(a), Some(b)) => Limit(Some(a.min(b))),
            (a, b) => Limit(a.or(b)),
        }
    }

    pub(crate) fn is_past(self) -> bool {
        self.0.is_some_and(|at| Instant::now() >= at)
    }

    /// Returns true if this ends before the other.
    pub(crate) fn is_before(self, other: Limit) -> bool {
        match (self.0, other.0) {
            (Some(a), Some(b)) => a < b,
            (a, _) => a.is_some(),
        }
    }

    /// Waits at a parker until it has a permit, the thread is interrupted, or the time is up.
    pub(crate) fn park_at(self, parker: &Parker) -> Result<(), Late> {
        let parked = match self.0 {
            None => parker.park_interruptible().map(|()| true),
            Some(at) => parker.park_until_interruptible(at),
        };
        match parked {
            Ok(true) => Ok(()),
            Ok(false) => Err(Late::TimedOut),
            Err(Interrupted) => Err(self.interrupted()),
        }
    }

    /// Returns why an interrupt has ended a wait: [`hold_during`] interrupts it, too, when the time
    /// is up.
    ///
    /// [`hold_during`]: Self::hold_during
    fn interrupted(self) -> Late {
        match self.is_past() {
            true => Late::TimedOut,
            false => Late::Interrupted,
        }
    }

    /// Calls `f`, with this as the deadline of all of its waits.
    pub(crate) fn hold_during<T>(self, f: impl FnOnce() -> T) -> T {
        match self.0 {
            Some(deadline) => pirn::scope::with_deadline(deadline, f),
            None => f(),
        }
    }

    /// Parks the running thread once, until it is unparked or interrupted, or the time is up. May
    /// return spuriously.
    pub(crate) fn park(self) -> Result<(), Late> {
        let parked = match self.0 {
            None => thread::park_interruptible(),
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                if left.is_zero() {
                    return Err(Late::TimedOut);
                }
                thread::park_timeout_interruptible(left)
            }
        };
        parked.map_err(|_| self.interrupted())
    }
}
