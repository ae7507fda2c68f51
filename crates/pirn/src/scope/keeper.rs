//! Who watches the clock for a scope with a deadline: a virtual thread of its own, because the owner may be busy with something
//! else when the time is up.

use super::JoinError;
use super::state::{Cause, ScopeState};
use crate::blocking::signal::Signal;
use crate::blocking::wait::Outcome;
use crate::sched;
use crate::sys;
use crate::thread::Builder;
use crate::vthread::Cell;
use core::ptr::NonNull;
use std::time::Instant;

/// An instant in the runtime's own time, monotonic nanoseconds; centuries away: none.
pub(super) fn monotonic(instant: Instant) -> Option<u64> {
    let left = instant.saturating_duration_since(Instant::now());
    let left = u64::try_from(left.as_nanos()).ok()?;
    sys::now().checked_add(left)
}

/// Tells the keeper of a scope to go home.
pub(super) struct Keeper(Signal);

impl Keeper {
    pub(super) const fn new() -> Keeper {
        Keeper(Signal::new())
    }

    /// Starts one for a scope that has a deadline.
    ///
    /// # Errors
    /// If its thread cannot be started.
    pub(super) fn begin<E>(&self, state: &ScopeState) -> Result<(), JoinError<E>> {
        let Some(deadline) = state.deadline else {
            return Ok(());
        };
        if deadline <= sys::now() {
            state.cancel(Cause::TimedOut, None);
            return Ok(());
        }
        let (scope, signal) = (NonNull::from(state), NonNull::from(&self.0));
        let keep = move || {
            // SAFETY: both are there until `end_keeping`.
            let (state, signal) = unsafe { (scope.as_ref(), signal.as_ref()) };
            if signal.wait(Some(deadline), None) == Outcome::TimedOut {
                state.cancel(Cause::TimedOut, None);
            }
            state.end_keeping();
        };
        let builder = Builder::new().name("scope-deadline".into());
        let thread = builder
            .make(None, |settings| Cell::allocate(settings, keep))
            .map_err(JoinError::Fork)?;
        state.begin_keeping();
        sched::make_runnable(thread.as_ptr());
        Ok(())
    }

    /// Sends it home, if there is one.
    pub(super) fn end(&self, state: &ScopeState) {
        if state.is_kept() {
            self.0.give();
        }
    }
}
