//! Deadlines for the extent of a call, without a scope.
//!
//! When the time is up, a virtual thread that a timer starts, as [for a scope](super::keeper), sets
//! the caller's flag of interruption. The two share a lock: the second to take it finds what the
//! first has done.
//!
//! ```text
//!   the caller                               the keeper's thread
//!   1 call f                                 a  lock: unless it is over, set EXPIRED, unlock
//!   2 lock: it is over, unlock               b  end the wait, if that has ended one
//!   3 clear EXPIRED, unless an outer         c  call those who listen for interrupts
//!     call's time is up as well
//! ```
//!
//! The flag has a bit of its own for this ([`WaitWord::expire`]), so that 3 takes back no interrupt
//! by another thread. The caller does not wait for b and c: a wait that a has decided does not
//! return before b, and a listener that is still called then was registered outside of the call.
//!
//! Rejected: a scope for each such call. It would have a place in the tree of scopes, and would
//! interrupt its members only, which the caller is not.
//!
//! [`WaitWord::expire`]: pirn_rt::vthread::wait_word::WaitWord::expire

use super::keeper::delayed;
use super::state;
use crate::thread::{Thread, current, tell_listeners};
use core::cell::Cell;
use core::panic::Location;
use pirn_rt::blocking::delayed::DelayedStart;
use pirn_rt::local;
use pirn_rt::lock::Lock;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::record::Place;
use std::sync::Arc;
use std::time::Instant;

thread_local! {
    /// The earliest deadline of the calls that the running thread is in.
    static CALLS: Cell<Called> = const { Cell::new(Called { deadline: Deadline::NEVER, given: None }) };
}

/// The deadline of a call.
#[derive(Clone, Copy)]
struct Called {
    deadline: Deadline,
    /// The same as it was given, if it was: who passes it on may compare it.
    given: Option<Instant>,
}

/// Calls a function, and interrupts the running thread if that takes longer than until `deadline`.
///
/// What is waiting then, or begins to wait afterwards, ends as by
/// [`Thread::interrupt`](crate::thread::Thread::interrupt), which lists the waits that end: input
/// and output fail with `ECANCELED`. When `f` has returned, the thread is no longer interrupted,
/// unless another thread has interrupted it as well, or the time of an outer call is up, too. The
/// result is that of `f`: what code has computed in spite of the interrupt is not lost.
///
/// Deadlines are inherited: an earlier one that holds already, of an outer call or of the
/// [scope](super::Builder::deadline) that the thread is in, replaces `deadline`, and a scope that
/// is opened within the call is cancelled at that time. Threads that are spawned without a scope
/// inherit none. Works on platform threads as well.
///
/// It costs what a thread does that is made and never started, and a timer: some 300 ns. A deadline
/// that has passed takes neither.
///
/// # Panics
/// If `f` does, or there is no memory for the thread that watches the clock.
///
/// # Examples
/// ```
/// use pirn::{scope, thread};
/// use std::io::Read;
/// use std::os::unix::net::UnixStream;
/// use std::time::{Duration, Instant};
///
/// let reader = thread::spawn(|| {
///     let (mut silent, _other) = UnixStream::pair()?;
///     let deadline = Instant::now() + Duration::from_millis(10);
///     scope::with_deadline(deadline, || silent.read(&mut [0; 64]))
/// });
/// let error = reader.join().unwrap().unwrap_err();
/// assert!(thread::is_interrupt(&error));
/// ```
#[track_caller]
pub fn with_deadline<T>(deadline: Instant, f: impl FnOnce() -> T) -> T {
    let outer = CALLS.get().deadline;
    let called = Called::min(deadline);
    let deadline = called.deadline;
    if outer <= deadline {
        return f(); // An outer call's time is up no later.
    }
    let extent = Arc::new(Extent::of_running_thread());
    let start = keeper(&extent, deadline, Location::caller());
    let leave = Leave {
        extent: &extent,
        start: start.as_ref(),
        outer,
    };
    match &start {
        // SAFETY: it stays in this frame, and `leave`, which is dropped before it, cancels it.
        Some(start) => unsafe { start.arm(deadline) },
        None => extent.expire(),
    }
    let result = local::with(&CALLS, called, f);
    drop(leave);
    result
}

/// Makes the thread that a timer starts when the time is up, unless it is.
fn keeper(extent: &Arc<Extent>, deadline: Deadline, place: Place) -> Option<DelayedStart> {
    if deadline.has_passed() {
        return None;
    }
    let extent = Arc::clone(extent);
    // SAFETY: the closure owns what it uses.
    let start = unsafe { delayed("deadline", place, move || extent.expire()) };
    Some(start.expect("there is memory for the thread that watches the clock"))
}

/// Returns the time at which what the running thread does is to end: the earliest deadline of the
/// calls of [`with_deadline`] and of the scopes that it is in.
///
/// Code that asks others, in whatever way, can pass it on. That of a call is as it was given; that
/// of a scope is exact to within a microsecond.
///
/// # Examples
/// ```
/// use pirn::scope;
/// use std::time::{Duration, Instant};
///
/// assert_eq!(scope::deadline(), None);
/// let deadline = Instant::now() + Duration::from_secs(60);
/// scope::with_deadline(deadline, || assert_eq!(scope::deadline(), Some(deadline)));
/// ```
pub fn deadline() -> Option<Instant> {
    let (deadline, called) = (in_force(), CALLS.get());
    match called.given {
        Some(given) if called.deadline == deadline => Some(given),
        _ => (!deadline.is_never()).then(|| deadline.instant()),
    }
}

/// Returns the deadline for what the running thread does.
pub(super) fn in_force() -> Deadline {
    // SAFETY: not kept.
    let scope = unsafe { state::current() };
    let scope = scope.map_or(Deadline::NEVER, |scope| scope.deadline);
    CALLS.get().deadline.min(scope)
}

impl Called {
    /// Returns a deadline, or that in force if it is earlier.
    fn min(given: Instant) -> Called {
        let (deadline, inherited) = (Deadline::at(given), in_force());
        Called {
            deadline: deadline.min(inherited),
            given: (deadline <= inherited).then_some(given),
        }
    }
}

/// What the caller and the keeper's thread share.
struct Extent {
    thread: Thread,
    is_over: Lock<bool>,
}

impl Extent {
    fn of_running_thread() -> Extent {
        Extent {
            thread: current(),
            is_over: Lock::new(false),
        }
    }

    /// Interrupts the thread, once, unless the call is over.
    fn expire(&self) {
        let (wakeup, listened) = {
            let mut is_over = self.is_over.lock();
            if core::mem::replace(&mut *is_over, true) {
                return;
            }
            self.thread.begin_expiry()
        };
        if let Some(wakeup) = wakeup {
            wakeup.perform();
        }
        if listened {
            tell_listeners(self.thread.id());
        }
    }
}

/// Ends the call, also if it panics.
struct Leave<'a> {
    extent: &'a Extent,
    /// The keeper, if the time was not up from the beginning.
    start: Option<&'a DelayedStart>,
    /// The deadline of the outer calls.
    outer: Deadline,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        // The child of a fork has no timers, and their locks may be held for ever.
        if let Some(start) = self.start
            && !pirn_rt::runtime::has_forked()
            && !start.cancel()
        {
            *self.extent.is_over.lock() = true;
        }
        if !self.outer.has_passed() {
            self.extent.thread.wait_word().forget_expiry();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_deadline_that_has_passed_has_no_keeper() {
        let extent = Arc::new(Extent::of_running_thread());
        let keeper_until = |at| keeper(&extent, Deadline::at(at), Location::caller());
        let now = Instant::now();
        assert!(keeper_until(now).is_none());
        let later = now + Duration::from_secs(3600);
        let keeper = keeper_until(later).unwrap();
        // SAFETY: it stays here until it is cancelled.
        unsafe { keeper.arm(Deadline::at(later)) };
        assert!(keeper.cancel());
    }
}
