//! A signal: one thread waits for it, and others give it.

use super::wait::{Outcome, Wait};
use crate::lock::Lock;
use crate::time::Deadline;
use crate::vthread::wait_word::Hearing;
use core::ptr::NonNull;

/// Like a park permit, but with a place of its own, so that what a thread waits for cannot be
/// mistaken for something else that it is told: at most one is there, and a wait uses it up.
pub(crate) struct Notice(Lock<NoticeState>);

struct NoticeState {
    given: bool,
    waiting: Option<NonNull<Wait>>,
}

// SAFETY: the pointer is followed under the lock only, while the waiting thread keeps it there.
unsafe impl Send for NoticeState {}

impl Notice {
    /// Not given.
    pub(crate) const fn new() -> Notice {
        Notice(Lock::new(NoticeState {
            given: false,
            waiting: None,
        }))
    }

    /// Waits until the signal is given, the deadline has come, or, if it
    /// hears that, the thread is interrupted.
    pub(crate) fn wait(&self, deadline: Deadline, hearing: Option<Hearing>) -> Outcome {
        let mut state = self.0.lock();
        if core::mem::take(&mut state.given) {
            return Outcome::Ready;
        }
        let Some(wait) = Wait::hearing(hearing) else {
            return Outcome::Interrupted;
        };
        debug_assert!(state.waiting.is_none(), "two threads wait for a signal");
        state.waiting = Some(NonNull::from(&wait));
        drop(state);
        let outcome = wait.block_until(deadline);
        if outcome != Outcome::Ready {
            // Given meanwhile, it stays for the next wait.
            self.0.lock().waiting = None;
        }
        outcome
    }

    /// Gives the signal.
    pub(crate) fn give(&self) {
        let wakeup = {
            let mut state = self.0.lock();
            // SAFETY: there, under the lock, only as long as the `Wait` is in its place.
            let claimed = state
                .waiting
                .take()
                .and_then(|wait| unsafe { wait.as_ref() }.claim(Outcome::Ready));
            state.given = claimed.is_none();
            claimed
        };
        if let Some(wakeup) = wakeup {
            wakeup.perform();
        }
    }
}
