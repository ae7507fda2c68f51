//! Ends and pauses: those who have a mailbox end, be held and go on.
//!
//! A kill, or a hold, interrupts the runner. It does so without the lock, since callbacks for
//! interrupts are the program's code, and may use this mailbox. Until it is done it is counted, and
//! a runner that takes interrupts away waits for that: so none comes late and meets what the thread
//! does afterwards.

use super::word::{END, HOLD};
use super::{Mailbox, Phase, Shared, Then, Work};
use pirn::thread::Thread;
use std::sync::{MutexGuard, PoisonError};

impl<T> Mailbox<T> {
    /// Has the mailbox end: at the latest phase that was asked for.
    pub(crate) fn end(&self, phase: Phase) -> Then {
        let (then, runner) = {
            let mut shared = self.lock();
            let is_new = shared.phase < phase;
            let then = self.end_in(&mut shared, phase);
            let interrupts = is_new && phase == Phase::Killing;
            (then, interrupts.then(|| shared.begin_interrupt()).flatten())
        };
        self.interrupt(runner);
        then
    }

    /// Returns true if the mailbox ends after the current item or has ended: to close it would
    /// change nothing. May return false when that has just begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.word.flags() & END != 0
    }

    /// Ends the mailbox, if it is open and there is neither a runner nor anything for one to do.
    /// Returns true if it has.
    pub(crate) fn end_idle(&self) -> bool {
        let mut shared = self.lock();
        let is_idle = shared.phase == Phase::Open
            && shared.work == Work::Idle
            && shared.queue.is_empty()
            && shared.extra.is_none();
        if is_idle {
            shared.phase = Phase::Ended;
            self.word.set(END);
        }
        is_idle
    }

    /// Interrupts the runner, if it is to be, which was counted under the lock.
    pub(super) fn interrupt(&self, runner: Option<Thread>) {
        if let Some(runner) = runner {
            runner.interrupt();
            self.lock().interrupts -= 1;
            self.interrupted.notify_all();
        }
    }

    /// Locks when no interrupt of the runner is under way. Called by the runner, which is not
    /// interrupted any more as long as it has the lock.
    pub(super) fn lock_settled(&self) -> MutexGuard<'_, Shared<T>> {
        let mut shared = self.lock();
        while shared.interrupts > 0 {
            let waited = self.interrupted.wait(shared);
            shared = waited.unwrap_or_else(PoisonError::into_inner);
        }
        shared
    }

    pub(super) fn end_in(&self, shared: &mut Shared<T>, phase: Phase) -> Then {
        if shared.phase >= phase {
            return Then::Nothing;
        }
        shared.phase = phase;
        if phase > Phase::Closing {
            self.word.set(END);
        }
        // Those who wait for room take their items back.
        shared.wake_line();
        shared.wake_resting();
        match shared.work {
            Work::Running | Work::Resting => Then::Nothing,
            // One that is held ends when it is released, unless it must not wait for that.
            Work::Held if phase == Phase::Closing => Then::Nothing,
            Work::Idle | Work::Held => {
                shared.work = Work::Running;
                Then::Start
            }
        }
    }

    /// Has the runner pause after the current item, which is interrupted. If there is no runner,
    /// one is to be started: it drops the state. A mailbox that is to end sooner is not held.
    pub(crate) fn hold(&self) -> Then {
        let mut shared = self.lock();
        if shared.phase > Phase::Closing || shared.work == Work::Held {
            return Then::Nothing;
        }
        self.word.set(HOLD);
        shared.wake_resting();
        let runner = shared.begin_interrupt();
        let then = shared.started();
        drop(shared);
        self.interrupt(runner);
        then
    }

    /// Has a mailbox that is held go on. One that has not come to it yet will be held all the same.
    pub(crate) fn release(&self) -> Then {
        let mut shared = self.lock();
        if shared.work != Work::Held {
            return Then::Nothing;
        }
        self.word.clear(HOLD);
        shared.work = Work::Running;
        Then::Start
    }

    pub(crate) fn is_held(&self) -> bool {
        self.lock().work == Work::Held
    }

    /// Returns true if there will be items to handle, so that a state is needed: unless it is to
    /// pause or to end before the next one.
    pub(crate) fn goes_on(&self) -> bool {
        let shared = self.lock();
        shared.phase <= Phase::Closing && self.word.flags() & HOLD == 0
    }
}
