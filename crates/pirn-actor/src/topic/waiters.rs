//! Threads that wait for a change.

use crate::poison::locked;
use crate::time::{Late, Limit};
use pirn::thread::{self, Interrupted, Thread};
use std::sync::Mutex;

/// Woken by each change. What they wait for, they look at themselves.
#[derive(Default)]
pub(super) struct Waiters(Mutex<Vec<Thread>>);

impl Waiters {
    /// Wakes all threads that wait. Called after the change.
    pub(super) fn wake(&self) {
        let waiting = core::mem::take(&mut *locked(&self.0));
        waiting.iter().for_each(Thread::unpark);
    }

    /// Calls `look` at first and after each change, until it returns something or the time is up.
    pub(super) fn wait<R>(
        &self,
        limit: Limit,
        mut look: impl FnMut() -> Option<R>,
    ) -> Result<Option<R>, Interrupted> {
        let this = thread::current();
        loop {
            // First in the list, then look: no change is between the two.
            locked(&self.0).push(this.clone());
            let registered = Registered(self, &this);
            if let Some(found) = look() {
                return Ok(Some(found));
            }
            let parked = limit.park();
            drop(registered);
            match parked {
                Ok(()) => {}
                Err(Late::TimedOut) => return Ok(look()),
                Err(Late::Interrupted) => return Err(Interrupted),
            }
        }
    }
}

/// Is in the list, for as long as this exists.
struct Registered<'a>(&'a Waiters, &'a Thread);

impl Drop for Registered<'_> {
    fn drop(&mut self) {
        let id = self.1.id();
        locked(&self.0.0).retain(|thread| thread.id() != id);
    }
}
