//! Watching the clock for a scope with a deadline. A virtual thread does it, because the owner may
//! be busy when the time is up. The thread is made when the scope is opened, and started by a
//! timer; usually the scope is left before, and the thread never runs.

use super::JoinError;
use super::state::{Cause, ScopeState};
use crate::thread::Builder;
use core::cell::OnceCell;
use core::ptr::NonNull;
use pirn_rt::blocking::delayed::DelayedStart;
use pirn_rt::vthread::ClosureBody;
use pirn_rt::vthread::record::Place;
use std::io;

/// Makes a thread that a timer starts.
///
/// # Errors
/// There is no memory for it.
///
/// # Safety
/// What the closure uses is there, and another thread may use it, until the closure has run or the
/// start has been cancelled.
pub(super) unsafe fn delayed(
    name: &str,
    place: Place,
    keep: impl FnOnce(),
) -> io::Result<DelayedStart> {
    let builder = Builder::new().name(name.into());
    let (_, thread) = builder.make(place, |attributes| ClosureBody::allocate(attributes, keep))?;
    Ok(DelayedStart::new(thread))
}

/// The keeper of a scope, if the scope has a deadline. Only the owner uses it.
pub(super) struct Keeper(OnceCell<DelayedStart>);

impl Keeper {
    pub(super) const fn new() -> Keeper {
        Keeper(OnceCell::new())
    }

    /// Makes the keeper if the scope has a deadline.
    ///
    /// # Errors
    /// If the keeper's thread cannot be made.
    ///
    /// # Safety
    /// The keeper and the state stay in place until [`end`](Self::end) has returned.
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
        let keep = move || {
            // SAFETY: the scope is there until `end_keeping`.
            let state = unsafe { scope.as_ref() };
            state.cancel(Cause::TimedOut, None);
            state.end_keeping();
        };
        // SAFETY: the caller keeps the state in place, whose lock protects what it shares.
        let start = unsafe { delayed("scope-deadline", place, keep) }.map_err(JoinError::Fork)?;
        state.begin_keeping();
        let start = self.0.get_or_init(|| start);
        // SAFETY: the keeper is in the scope's frame, which stays until `end` has been called.
        unsafe { start.arm(state.deadline) };
        Ok(())
    }

    /// Dismisses the keeper, if there is one and the time is not up. A keeper that has started
    /// leaves the scope by itself.
    pub(super) fn end(&self, state: &ScopeState) {
        let Some(start) = self.0.get() else { return };
        // The child of a fork has no timers, and their locks may be held for ever.
        if !pirn_rt::runtime::has_forked() && start.cancel() {
            state.end_keeping();
        }
    }
}
