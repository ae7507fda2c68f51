//! What is drawn, and what all of these tests count.

use pirn::thread;
use std::hash::{BuildHasher, RandomState};
use std::panic::resume_unwind;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::Duration;

/// Returns a number below `end`, by the seed.
pub fn below(end: u64) -> u64 {
    RandomState::new().hash_one(()) % end
}

/// Sleeps for less than this number of milliseconds. Returns whether the thread was not
/// interrupted.
pub fn nap(millis: u64) -> bool {
    thread::sleep_interruptible(Duration::from_micros(below(1000 * millis))).is_ok()
}

/// Panics, without a line on standard error.
pub fn fail() -> ! {
    resume_unwind(Box::new("a bug".to_string()))
}

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

    pub fn get(&self) -> usize {
        self.0.load(SeqCst)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, SeqCst);
    }
}
