//! How many threads wait for the same lock.

use super::Noted;
use pirn_dump::{LockKind, Thread, Wait};
use std::collections::HashMap;

/// The most locks that are counted for: each thread may park on a futex of its own.
const MOST: usize = 1 << 16;

/// The numbers of threads that wait for locks.
#[derive(Default)]
pub struct Crowds {
    counts: HashMap<(LockKind, u64), u32>,
}

impl Crowds {
    /// Counts a thread.
    pub fn add(&mut self, noted: &Noted) {
        let Wait::Lock { address, what, .. } = noted.plain() else {
            return;
        };
        let room = self.counts.len() < MOST;
        match self.counts.get_mut(&(what, address)) {
            Some(count) => *count += 1,
            None if room => {
                self.counts.insert((what, address), 1);
            }
            None => {}
        }
    }

    /// Tells threads how many wait for the lock that they wait for, when all have been counted.
    pub fn count(&self, threads: &mut [Thread]) {
        for thread in threads {
            if let Wait::Lock {
                address,
                what,
                waiters,
                ..
            } = &mut thread.wait
            {
                *waiters = self.counts.get(&(*what, *address)).copied();
            }
        }
    }
}
