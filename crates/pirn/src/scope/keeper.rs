//! Watching the clock for a scope with a deadline: a virtual thread does, because the
//! owner may be busy with something else when the time is up. It is made when the scope is opened,
//! and started by a timer; mostly the scope is left before, and it never runs.

use super::JoinError;
use super::state::{Cause, ScopeState};
use crate::blocking::delayed::DelayedStart;
use crate::thread::Builder;
use crate::vthread::ClosureBody;
use core::cell::OnceCell;
use core::ptr::NonNull;

/// The keeper of a scope, if that has a deadline. The owner's alone.
pub(super) struct Keeper(OnceCell<DelayedStart>);

impl Keeper {
    pub(super) const fn new() -> Keeper {
        Keeper(OnceCell::new())
    }

    /// Makes one for a scope that has a deadline.
    ///
    /// # Errors
    /// If its thread cannot be made.
    ///
    /// # Safety
    /// Both stay in place until [`end`](Self::end) has returned.
    pub(super) unsafe fn begin<E>(&self, state: &ScopeState) -> Result<(), JoinError<E>> {
        if state.deadline.is_never() {
            return Ok(());
        }
        if state.deadline.has_passed() {
            state.cancel(Cause::TimedOut, None);
            return Ok(());
        }
        let scope = NonNull::from(state);
        let keep = move || {
            // SAFETY: it is there until `end_keeping`.
            let state = unsafe { scope.as_ref() };
            state.cancel(Cause::TimedOut, None);
            state.end_keeping();
        };
        let builder = Builder::new().name("scope-deadline".into());
        let (_, thread) = builder
            .make(|attributes| ClosureBody::allocate(attributes, keep))
            .map_err(JoinError::Fork)?;
        state.begin_keeping();
        let start = self.0.get_or_init(|| DelayedStart::new(thread));
        // SAFETY: this is in the scope's frame, which stays until `end` has been called.
        unsafe { start.arm(state.deadline) };
        Ok(())
    }

    /// Dismisses it, if there is one and the time is not up. Otherwise it leaves the scope by
    /// itself.
    pub(super) fn end(&self, state: &ScopeState) {
        let Some(start) = self.0.get() else { return };
        // In the child of a fork there are no timers, and their locks may be held for ever.
        if !crate::runtime::has_forked() && start.cancel() {
            state.end_keeping();
        }
    }
}
