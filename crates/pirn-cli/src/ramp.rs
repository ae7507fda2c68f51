//! Lets a bounded number of users connect at a time.
//!
//! A listener's queue of connections not accepted yet is short (128 in `std`). The kernel drops
//! what does not fit, and the client tries again a second later: a burst of 20,000 would measure
//! that.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// The gate before the connecting users; made with [`Ramp::new`].
pub struct Ramp {
    at_most: usize,
    connecting: Mutex<usize>,
    changed: Condvar,
}

/// A user who is connecting. Dropped, it lets in the next one, also in a panic.
pub struct Entering(Arc<Ramp>);

impl Ramp {
    /// A ramp on which `at_most` users connect at a time.
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

    /// Waits until no one is connecting any more.
    pub fn wait_until_empty(&self) {
        drop(self.wait_while(|connecting| connecting > 0));
    }

    fn wait_while(&self, condition: impl Fn(usize) -> bool) -> MutexGuard<'_, usize> {
        let connecting = self.lock();
        self.changed
            .wait_while(connecting, |connecting| condition(*connecting))
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// A number is whole at all times, so a poisoned lock says nothing about it.
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
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    #[test]
    fn no_more_enter_than_there_is_room_for() {
        let ramp = Ramp::new(3);
        let inside = Arc::new(AtomicUsize::new(0));
        let users: Vec<_> = (0..100)
            .map(|_| {
                let entering = ramp.enter();
                let inside = Arc::clone(&inside);
                thread::spawn(move || {
                    let others = inside.fetch_add(1, Ordering::SeqCst);
                    assert!(others < 3, "{others} others were inside");
                    thread::yield_now();
                    inside.fetch_sub(1, Ordering::SeqCst);
                    drop(entering);
                })
            })
            .collect();
        ramp.wait_until_empty();
        assert_eq!(inside.load(Ordering::SeqCst), 0);
        for user in users {
            user.join().unwrap();
        }
    }

    #[test]
    fn a_panic_leaves_the_ramp_too() {
        let ramp = Ramp::new(1);
        let entering = ramp.enter();
        let user = thread::spawn(move || {
            let _entering = entering;
            panic!("(this panic is part of a test)");
        });
        assert!(user.join().is_err());
        ramp.wait_until_empty();
    }
}
