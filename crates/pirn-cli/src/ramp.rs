//! Lets a bounded number of users connect at a time.
//!
//! A listener's queue of connections that are not accepted yet is short (128 in `std`). The kernel
//! drops connections beyond that, and the client tries again a second later: a burst of 20,000
//! would measure these retries.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The gate for connecting users.
pub struct Ramp {
    at_most: usize,
    connecting: Mutex<usize>,
    changed: Condvar,
}

/// A user who is connecting. Dropping it lets in the next user, also during a panic.
pub struct Entering(Arc<Ramp>);

impl Ramp {
    /// Returns a ramp on which `at_most` users connect at a time.
    pub fn new(at_most: usize) -> Arc<Self> {
        Arc::new(Ramp {
            at_most,
            connecting: Mutex::new(0),
            changed: Condvar::new(),
        })
    }

    /// Waits until there is room for one more.
    pub fn enter(self: &Arc<Self>) -> Entering {
        *self.wait_while(|connecting| connecting >= self.at_most) += 1;
        Entering(Arc::clone(self))
    }

    /// Waits until no user is connecting any more.
    pub fn wait_until_empty(&self) {
        drop(self.wait_while(|connecting| connecting > 0));
    }

    fn wait_while(&self, condition: impl Fn(usize) -> bool) -> MutexGuard<'_, usize> {
        let connecting = self.lock();
        self.changed
            .wait_while(connecting, |connecting| condition(*connecting))
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Ignores poisoning: a number is never half changed.
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.connecting
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Entering {
    fn drop(&mut self) {
        *self.0.lock() -= 1;
        self.0.changed.notify_one(); // only the thread that starts the users ever waits
    }
}

#[cfg(test)]
mod tests;
