//! Ends and pauses of a mailbox.
//!
//! A kill, or a hold, interrupts the runner. It does so without the lock, since interrupt callbacks
//! are the program's code, and may use this mailbox. The interrupt is counted until it is done, and
//! a runner that clears interrupts waits for that: so no late interrupt reaches what the thread
//! does afterwards.

use super::word::{END, HOLD};
use super::{Mailbox, Phase, Shared, Then, Work};
use crate::edges;
use crate::identity::Identity;
use crate::poison::wait_while;
use pirn::thread::Thread;
use std::sync::MutexGuard;

impl<T> Mailbox<T> {
    /// Ends the mailbox of the actor `at`, in the strictest phase that was asked for.
    pub(crate) fn end(&self, phase: Phase, at: &Identity) -> Then {
        let (then, runner) = {
            let mut shared = self.lock();
            let is_new = shared.phase < phase;
            let then = self.end_in(&mut shared, phase);
            let interrupts = is_new && phase == Phase::Killing;
            (then, interrupts.then(|| shared.begin_interrupt()).flatten())
        };
        self.interrupt(runner);
        if phase == Phase::Killing {
            edges::interrupted(at);
        }
        then
    }

    /// Returns true if the mailbox ends after the current item, or has ended: a close would change
    /// nothing. May return false for an end that has just begun.
    pub(crate) fn is_stopping(&self) -> bool {
        self.word.flags() & END != 0
    }

    /// Ends the mailbox if it is open, without items and without a runner. Returns true if it has.
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

    /// Interrupts a runner that `begin_interrupt` has returned, and notes that this is done.
    pub(super) fn interrupt(&self, runner: Option<Thread>) {
        if let Some(runner) = runner {
            runner.interrupt();
            self.lock().interrupts -= 1;
            self.interrupted.notify_all();
        }
    }

    /// Locks when no interrupt of the runner is under way. Called by the runner, which is not
    /// interrupted while it holds the lock.
    pub(super) fn lock_settled(&self) -> MutexGuard<'_, Shared<T>> {
        wait_while(&self.interrupted, self.lock(), |shared| {
            shared.interrupts > 0
        })
    }

    pub(super) fn end_in(&self, shared: &mut Shared<T>, phase: Phase) -> Then {
        if shared.phase >= phase {
            return Then::Nothing;
        }
        shared.phase = phase;
        if phase > Phase::Closing {
            self.word.set(END);
        }
        // Senders that wait for room take their items back.
        shared.wake_line();
        shared.wake_resting();
        match shared.work {
            Work::Running | Work::Resting => Then::Nothing,
            // A held mailbox ends when it is released, unless the end must not wait for that.
            Work::Held if phase == Phase::Closing => Then::Nothing,
            Work::Idle | Work::Held => {
                shared.work = Work::Running;
                Then::Start
            }
        }
    }

    /// Makes the runner of the actor `at` pause after the current item, which is interrupted. An
    /// idle actor needs a runner: it drops the state. A mailbox that ends before is not held.
    pub(crate) fn hold(&self, at: &Identity) -> Then {
        let (then, runner) = {
            let mut shared = self.lock();
            if shared.phase > Phase::Closing || shared.work == Work::Held {
                (Then::Nothing, None)
            } else {
                self.word.set(HOLD);
                shared.wake_resting();
                let runner = shared.begin_interrupt();
                (shared.started(), runner)
            }
        };
        self.interrupt(runner);
        edges::interrupted(at);
        then
    }

    /// Restarts a held mailbox. Does nothing if the mailbox is not held yet: the hold then still
    /// comes.
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

    /// Returns true if the runner needs a state: unless it is to pause or to end before the next
    /// item.
    pub(crate) fn goes_on(&self) -> bool {
        let shared = self.lock();
        shared.phase <= Phase::Closing && self.word.flags() & HOLD == 0
    }
}
