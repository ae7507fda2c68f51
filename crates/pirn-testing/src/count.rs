//! How many of some things there are at a time.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

/// A number of things that are there.
#[derive(Clone, Default)]
pub struct Count(Arc<AtomicUsize>);

/// One of them.
pub struct One(Count);

impl Count {
    /// Adds one, until it is dropped. Returns how many there are with it.
    pub fn add(&self) -> (One, usize) {
        let with_it = self.0.fetch_add(1, SeqCst) + 1;
        (One(self.clone()), with_it)
    }

    /// Returns how many there are.
    pub fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}
