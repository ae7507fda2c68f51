//! A thread of a node that serves something, to those who end it.

use crate::engine::Stop;
use crate::poison::locked;
use core::time::Duration;
use std::sync::{Condvar, Mutex};

pub(crate) struct Task {
    stop: Stop,
    is_over: Mutex<bool>,
    changed: Condvar,
}

impl Task {
    pub(crate) fn new(stop: Stop) -> Task {
        Task {
            stop,
            is_over: Mutex::new(false),
            changed: Condvar::new(),
        }
    }

    /// Has it end after what has come already.
    pub(crate) fn stop(&self) {
        (self.stop)();
    }

    /// It has ended.
    pub(crate) fn over(&self) {
        *locked(&self.is_over) = true;
        self.changed.notify_all();
    }

    /// Waits for the end, for as long as `limit`.
    pub(crate) fn join(&self, limit: Duration) {
        let is_over = locked(&self.is_over);
        let waited = self
            .changed
            .wait_timeout_while(is_over, limit, |over| !*over);
        drop(waited);
    }
}
