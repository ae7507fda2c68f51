//! Deadlines: of scopes, and of calls without a scope ([`with_deadline`]).
//!
//! A virtual thread that a timer starts, the watcher, acts when the time is up, because the owner
//! of the scope, or the caller, may be busy then. The watcher is made when the scope is opened or
//! the function is called. Usually the scope is left before, and the watcher never runs.
//!
//! The watcher of a scope cancels the scope. The watcher of a call sets the caller's interrupt
//! flag, under a lock that caller and watcher share: the second to take it finds what the first has
//! done.
//!
//! ```text
//!   the caller                               the watcher
//!   1 call f                                 a  lock: unless it is over, set EXPIRED, unlock
//!   2 lock: it is over, unlock               b  end the wait, if a has decided one
//!   3 clear EXPIRED, unless an outer         c  call the listeners for interrupts
//!     call's time is up as well
//! ```
//!
//! The flag has a bit of its own for this ([`WaitWord::expire`]), so that 3 takes back no interrupt
//! by another thread. The caller does not wait for b and c: a wait that a has decided does not
//! return before b, and a listener that is still called then was registered outside of the call.
//!
//! Rejected: a scope for each such call. The scope would have a place in the tree of scopes, and
//! would interrupt only its members, and the caller is no member.
//!
//! [`WaitWord::expire`]: pirn_rt::vthread::wait_word::WaitWord::expire

use super::JoinError;
use super::state::{self, Cause, ScopeState};
use crate::thread::interrupt::tell_listeners;
use crate::thread::{Builder, Thread, current};
use core::cell::{Cell, OnceCell};
use core::panic::Location;
use core::ptr::NonNull;
use pirn_rt::blocking::timer::DelayedStart;
use pirn_rt::lock::Lock;
use pirn_rt::panic;
use pirn_rt::sched::ClosureBody;
use pirn_rt::time::Deadline;
use pirn_rt::vthread::record::Place;
use std::io;
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
    /// The deadline as the program gave it, if it did: a program that passes it on may compare it.
    given: Option<Instant>,
}

/// Calls a function, and interrupts the running thread if `deadline` passes meanwhile.
///
/// A wait that is under way then, or begins afterwards, ends as by
/// [`Thread::interrupt`](crate::thread::Thread::interrupt), which lists the waits that end: input
/// and output fail with `ECANCELED`. When `f` has returned, the thread is no longer interrupted,
/// unless another thread has interrupted it as well, or the time of an outer call is up, too. The
/// result of `f` is returned in any case.
///
/// Deadlines are inherited: an earlier one that holds already, of an outer call or of the
/// [scope](super::Builder::deadline) that the thread is in, replaces `deadline`, and a scope that
/// is opened within the call is cancelled at that time. Threads that are spawned without a scope
/// inherit none. Works on platform threads as well.
///
/// A call makes a thread that is usually never started, and a timer: some 300 ns. A deadline that
/// has passed takes neither.
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
    let start = watch_call(&extent, deadline, Location::caller());
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
    let result = panic::with_local(&CALLS, called, f);
    drop(leave);
    result
}

/// Makes the watcher of a call, unless its time is up already.
fn watch_call(extent: &Arc<Extent>, deadline: Deadline, place: Place) -> Option<DelayedStart> {
    if deadline.has_passed() {
        return None;
    }
    let extent = Arc::clone(extent);
    // SAFETY: the closure owns what it uses.
    let start = unsafe { watcher("deadline", place, move || extent.expire()) };
    Some(start.expect("there is memory for the thread that watches the clock"))
}

/// Returns the earliest deadline of the scopes and the calls of [`with_deadline`] that the running
/// thread is in.
///
/// A client can pass it on to its server. The deadline of a call is returned as it was given, the
/// deadline of a scope to within a microsecond.
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
    /// Returns a deadline, or the one in force if it is earlier.
    fn min(given: Instant) -> Called {
        let (deadline, inherited) = (Deadline::at(given), in_force());
        Called {
            deadline: deadline.min(inherited),
            given: (deadline <= inherited).then_some(given),
        }
    }
}

/// What the caller and the watcher share.
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
    /// The watcher, if the time was not up from the beginning.
    start: Option<&'a DelayedStart>,
    /// The deadline of the outer calls.
    outer: Deadline,
}

impl Drop for Leave<'_> {
    fn drop(&mut self) {
        // The child of a fork has no timers, and their locks may be held for ever.
        if let Some(start) = self.start
            && !pirn_rt::sched::runtime::has_forked()
            && !start.cancel()
        {
            *self.extent.is_over.lock() = true;
        }
        if !self.outer.has_passed() {
            self.extent.thread.wait_word().forget_expiry();
        }
    }
}

/// Makes a thread that calls `act` when a timer starts it.
///
/// # Errors
/// There is no memory for the thread.
///
/// # Safety
/// What the closure uses is there, and another thread may use it, until the closure has run or the
/// start has been cancelled.
unsafe fn watcher(name: &str, place: Place, act: impl FnOnce()) -> io::Result<DelayedStart> {
    let builder = Builder::new().name(name.into());
    let (_, thread) = builder.make(place, |attributes| ClosureBody::allocate(attributes, act))?;
    Ok(DelayedStart::new(thread))
}

/// The watcher of a scope, if the scope has a deadline. Only the owner uses it.
pub(super) struct ScopeDeadline(OnceCell<DelayedStart>);

impl ScopeDeadline {
    pub(super) const fn new() -> ScopeDeadline {
        ScopeDeadline(OnceCell::new())
    }

    /// Makes the watcher if the scope has a deadline.
    ///
    /// # Errors
    /// The watcher's thread could not be made.
    ///
    /// # Safety
    /// This and the state stay in place until [`end`](Self::end) has returned.
    pub(super) unsafe fn begin<E>(
        &self,
        state: &ScopeState,
        place: Place,
    ) -> Result<(), JoinError<E>> {
        if state.deadline.is_never() {
            return Ok(());
        }
        if state.deadline.has_passed() {
            state.cancel(Cause::TimedOut, None);
            return Ok(());
        }
        let scope = NonNull::from(state);
        let act = move || {
            // SAFETY: the scope is there until `end_watch`.
            let state = unsafe { scope.as_ref() };
            state.cancel(Cause::TimedOut, None);
            state.end_watch();
        };
        // SAFETY: the caller keeps the state in place, whose lock protects what it shares.
        let start = unsafe { watcher("scope-deadline", place, act) }.map_err(JoinError::Fork)?;
        state.begin_watch();
        let start = self.0.get_or_init(|| start);
        // SAFETY: the start is in the scope's frame, which stays until `end` has been called.
        unsafe { start.arm(state.deadline) };
        Ok(())
    }

    /// Cancels the watcher, if there is one and the time is not up. A watcher that has started
    /// leaves the scope by itself.
    pub(super) fn end(&self, state: &ScopeState) {
        let Some(start) = self.0.get() else { return };
        // The child of a fork does not have its timer, whose lock may be held for ever.
        if !state.is_left_behind() && start.cancel() {
            state.end_watch();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn a_deadline_that_has_passed_has_no_watcher() {
        let extent = Arc::new(Extent::of_running_thread());
        let watch_until = |at| watch_call(&extent, Deadline::at(at), Location::caller());
        let now = Instant::now();
        assert!(watch_until(now).is_none());
        let later = now + Duration::from_secs(3600);
        let watcher = watch_until(later).unwrap();
        // SAFETY: it stays here until it is cancelled.
        unsafe { watcher.arm(Deadline::at(later)) };
        assert!(watcher.cancel());
    }
}
