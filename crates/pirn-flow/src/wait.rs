//! Waits for a state under a lock, which an interrupt and a time limit end. A wait at a
//! `std::sync::Condvar` ignores interrupts.

use core::time::Duration;
use pirn::scope;
use pirn::thread::{self, Thread};
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Why a wait ended early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Late {
    TimedOut,
    Interrupted,
}

/// Threads that wait for one condition, in order of arrival. A part of the state that they wait
/// for.
#[derive(Default)]
pub(crate) struct Line(VecDeque<Thread>);

impl Line {
    /// Takes the first thread out. The caller wakes it.
    pub(crate) fn next(&mut self) -> Option<Thread> {
        self.0.pop_front()
    }

    /// Wakes the first threads, at most this many.
    pub(crate) fn wake(&mut self, most: usize) {
        let count = most.min(self.0.len());
        self.0.drain(..count).for_each(|thread| thread.unpark());
    }
}

/// Locks a mutex. A panic never leaves a state of this crate half changed, so poison means nothing.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits in a line until `take` returns a value from the state. A thread that was woken calls
/// `take` once more even if it is late, so no wake is lost.
pub(crate) fn wait<T, R>(
    state: &Mutex<T>,
    line: fn(&mut T) -> &mut Line,
    until: Option<Instant>,
    mut take: impl FnMut(&mut T) -> Option<R>,
) -> Result<R, Late> {
    let mut guard = locked(state);
    let mut late = None;
    loop {
        if let Some(taken) = take(&mut guard) {
            return Ok(taken);
        }
        if let Some(late) = late {
            return Err(late);
        }
        let this = thread::current();
        line(&mut guard).0.push_back(this.clone());
        drop(guard);
        late = park(until).err();
        guard = locked(state);
        line(&mut guard).0.retain(|thread| thread.id() != this.id());
    }
}

/// Parks the running thread until it is unparked or interrupted, or the time is up.
fn park(until: Option<Instant>) -> Result<(), Late> {
    let parked = match until {
        None => thread::park_interruptible(),
        Some(at) => {
            let left = at.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Late::TimedOut);
            }
            thread::park_timeout_interruptible(left)
        }
    };
    // The scope of a deadline interrupts its threads when the deadline has passed.
    parked.map_err(|_| match is_past(until) {
        true => Late::TimedOut,
        false => Late::Interrupted,
    })
}

/// Returns true if there is a time, and it has passed.
pub(crate) fn is_past(time: Option<Instant>) -> bool {
    time.is_some_and(|at| Instant::now() >= at)
}

/// Returns the end of this timeout, or the running thread's deadline if that is earlier.
pub(crate) fn limit(timeout: Duration) -> Option<Instant> {
    let ends = [Instant::now().checked_add(timeout), scope::deadline()];
    ends.into_iter().flatten().min()
}
