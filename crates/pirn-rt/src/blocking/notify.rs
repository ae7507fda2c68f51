//! A signal: one thread waits for it, and others give it.

use crate::blocking::wait::{Outcome, Wait};
use crate::lock::Lock;
use crate::time::Deadline;
use crate::vthread::wait_reason::WaitReason;
use crate::vthread::wait_word::Interruptible;
use core::ptr::NonNull;

/// Like a park permit, but in a place of its own, so that it cannot be mistaken for a permit meant
/// for something else. At most one signal is stored, and a wait uses it up.
pub struct Notify(Lock<NotifyState>);

struct NotifyState {
    given: bool,
    waiting: Option<NonNull<Wait>>,
}

// SAFETY: the pointer is followed under the lock only, while the waiting thread keeps it there.
unsafe impl Send for NotifyState {}

impl Notify {
    /// Returns one whose signal has not been given.
    pub const fn new() -> Notify {
        Notify(Lock::new(NotifyState {
            given: false,
            waiting: None,
        }))
    }

    /// Waits until the signal is given, the deadline has passed, a safe point is requested, or an
    /// interrupt comes that `interruptible` lets end it. Dumps show `reason`.
    pub fn wait(
        &self,
        reason: WaitReason,
        deadline: Deadline,
        interruptible: Interruptible,
    ) -> Outcome {
        let mut state = self.0.lock();
        if core::mem::take(&mut state.given) {
            return Outcome::Ready;
        }
        let wait = match Wait::begin(reason, interruptible) {
            Ok(wait) => wait,
            Err(refused) => return refused,
        };
        if state.waiting.is_some() {
            drop(state); // The panic's message may have to wait.
            panic!("two threads wait for one signal at the same time");
        }
        state.waiting = Some(NonNull::from(&wait));
        drop(state);
        let outcome = wait.block_until(deadline);
        if outcome != Outcome::Ready {
            // A signal given meanwhile stays for the next wait.
            self.0.lock().waiting = None;
        }
        outcome
    }

    /// Gives the signal.
    pub fn notify(&self) {
        let wakeup = {
            let mut state = self.0.lock();
            // SAFETY: the pointer is set, under the lock, only while the `Wait` is in its place.
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
