//! How many threads run and could run.

use crate::timeline::Why;
use std::collections::HashMap;

/// What a thread is doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    Running,
    Runnable,
    Waiting,
}

/// The states of all threads that were seen.
#[derive(Debug, Default)]
pub(super) struct States {
    of: HashMap<u64, State>,
    pub(super) running: u64,
    pub(super) runnable: u64,
    /// Of those that were seen.
    waiting: u64,
}

impl States {
    /// Notes a switch on a processor.
    pub(super) fn switch(&mut self, before: u64, why: Why, next: u64) {
        match why {
            Why::Yield | Why::Preempt => self.set(before, State::Runnable),
            // Unless it has been woken on its way to being parked.
            Why::Park(_) if self.of.get(&before) == Some(&State::Running) => {
                self.set(before, State::Waiting);
            }
            Why::Exit | Why::Mount | Why::Park(_) => {
                if self.of.get(&before) == Some(&State::Running) {
                    self.remove(before);
                }
            }
        }
        if next != 0 {
            self.set(next, State::Running);
        }
    }

    /// Notes the state of a thread.
    pub(super) fn set(&mut self, thread: u64, state: State) {
        if thread == 0 {
            return;
        }
        self.remove(thread);
        self.of.insert(thread, state);
        *self.count(state) += 1;
    }

    fn remove(&mut self, thread: u64) {
        if let Some(state) = self.of.remove(&thread) {
            *self.count(state) -= 1;
        }
    }

    fn count(&mut self, state: State) -> &mut u64 {
        match state {
            State::Running => &mut self.running,
            State::Runnable => &mut self.runnable,
            State::Waiting => &mut self.waiting,
        }
    }
}
