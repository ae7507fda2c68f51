//! What a delivery passes through, so that a subscription ends exactly.
//!
//! ```text
//!   delivery:    enter ------ deliver ------ leave
//!   end:                 close, then wait until all deliveries have left, but those of this thread
//! ```
//!
//! Who has ended a subscription may free what it was told to. No lock is held while a delivery is
//! on its way, so a subscriber may end its own subscription while it is told something.

use crate::poison::locked;
use core::sync::atomic::AtomicU64;
use pirn::thread::{self, ThreadId};
use std::sync::{Condvar, Mutex, PoisonError};

pub(super) struct Gate {
    /// The number of messages for which there was no room behind the gate.
    pub(super) missed: AtomicU64,
    state: Mutex<State>,
    left: Condvar,
}

#[derive(Default)]
struct State {
    is_closed: bool,
    /// The threads that deliver. One that publishes while it is told something is here twice.
    within: Vec<ThreadId>,
}

/// A delivery is on its way, for as long as this exists.
pub(super) struct Within<'a>(&'a Gate);

fn this_thread() -> ThreadId {
    thread::current().id()
}

impl Gate {
    pub(super) fn new() -> Gate {
        Gate {
            missed: AtomicU64::new(0),
            state: Mutex::default(),
            left: Condvar::new(),
        }
    }

    /// Begins a delivery, unless the gate is closed.
    pub(super) fn enter(&self) -> Option<Within<'_>> {
        let mut state = locked(&self.state);
        if state.is_closed {
            return None;
        }
        state.within.push(this_thread());
        Some(Within(self))
    }

    /// Lets no further delivery in.
    pub(super) fn close(&self) {
        locked(&self.state).is_closed = true;
    }

    pub(super) fn is_closed(&self) -> bool {
        locked(&self.state).is_closed
    }

    /// Waits until all deliveries have left, but those of which this call is a part.
    pub(super) fn wait(&self) {
        let this = this_thread();
        let mut state = locked(&self.state);
        while state.within.iter().any(|thread| *thread != this) {
            state = self
                .left
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl Drop for Within<'_> {
    fn drop(&mut self) {
        let this = this_thread();
        let mut state = locked(&self.0.state);
        let at = state.within.iter().rposition(|thread| *thread == this);
        state.within.remove(at.expect("it has entered"));
        let is_closed = state.is_closed;
        drop(state);
        if is_closed {
            self.0.left.notify_all();
        }
    }
}
