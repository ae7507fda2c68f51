//! A gate at which the threads of a test wait.

use std::sync::{Arc, Condvar, Mutex};

/// A door that is opened once, for all threads that wait at it.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<bool>, Condvar)>);

impl Gate {
    /// Makes a closed gate.
    pub fn new() -> Gate {
        Gate::default()
    }

    /// Lets all threads through from now on.
    pub fn open(&self) {
        *self.0.0.lock().unwrap() = true;
        self.0.1.notify_all();
    }

    /// Returns true if the gate is open.
    pub fn is_open(&self) -> bool {
        *self.0.0.lock().unwrap()
    }

    /// Waits until the gate is open.
    pub fn wait(&self) {
        let open = self.0.0.lock().unwrap();
        drop(self.0.1.wait_while(open, |open| !*open).unwrap());
    }
}
