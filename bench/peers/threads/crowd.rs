//! Threads that all wait until they are woken.

use crate::thread::{self, JoinHandle, Thread};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// What the waiting threads share with the watcher, the thread that has made this.
pub struct Crowd {
    watcher: Thread,
    expected: AtomicU64,
    waiting: AtomicU64,
    awake: AtomicBool,
}

impl Crowd {
    /// A crowd of this many threads, none of which is there yet.
    pub fn of(expected: u64) -> Arc<Crowd> {
        Arc::new(Crowd {
            watcher: thread::current(),
            expected: AtomicU64::new(expected),
            waiting: AtomicU64::new(0),
            awake: AtomicBool::new(false),
        })
    }

    /// Makes it larger, before the threads that are to come are spawned.
    pub fn expect(&self, more: u64) {
        self.expected.fetch_add(more, Ordering::SeqCst);
    }

    /// For the watcher: waits until all threads wait; gives how many.
    pub fn watch(&self) -> u64 {
        loop {
            let waiting = self.waiting.load(Ordering::SeqCst);
            if waiting >= self.expected.load(Ordering::SeqCst) {
                return waiting;
            }
            thread::park();
        }
    }

    /// For the watcher: wakes all, which are these.
    pub fn wake<T>(&self, threads: &[JoinHandle<T>]) {
        self.awake.store(true, Ordering::SeqCst);
        for thread in threads {
            thread.thread().unpark();
        }
    }

    /// For the others: waits until woken.
    pub fn wait(&self) {
        self.arrive();
        while !self.awake.load(Ordering::SeqCst) {
            thread::park();
        }
        crate::end_after_park();
    }

    /// For the others: waits until woken, which is true, or until so much time has passed.
    pub fn wait_at_most(&self, limit: Duration) -> bool {
        self.arrive();
        let awake = park_until(limit, || self.awake.load(Ordering::SeqCst));
        crate::end_after_park();
        awake
    }

    /// For the others: counts the thread.
    pub fn arrive(&self) {
        let waiting = self.waiting.fetch_add(1, Ordering::SeqCst) + 1;
        if waiting == self.expected.load(Ordering::SeqCst) {
            self.watcher.unpark();
        }
    }
}

/// Waits until `done`, of which an unpark tells, or until so much time has passed; gives whether it
/// is done.
pub fn park_until(limit: Duration, done: impl Fn() -> bool) -> bool {
    let start = Instant::now();
    while !done() {
        match limit.checked_sub(start.elapsed()) {
            Some(left) if !left.is_zero() => thread::park_timeout(left),
            _ => return false,
        }
    }
    true
}
