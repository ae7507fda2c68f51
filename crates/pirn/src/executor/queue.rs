//! The results of several tasks, in the order in which they come.

use super::watched::{GaveUp, WaitLimit, Watched};
use crate::thread::Panic;
use pirn_rt::vthread::body::caught;
use std::collections::VecDeque;
use std::sync::Arc;

/// The queue; cloned for each task that puts a result in.
pub(super) struct Queue<R>(Arc<Watched<VecDeque<R>>>);

impl<R> Queue<R> {
    pub(super) fn new() -> Queue<R> {
        Queue(Arc::new(Watched::new(VecDeque::new())))
    }

    /// Returns the next result, if there is one.
    pub(super) fn poll(&self) -> Option<R> {
        self.0.with(VecDeque::pop_front)
    }

    /// Waits for the next result and returns it.
    pub(super) fn take(&self, limit: WaitLimit) -> Result<R, GaveUp> {
        self.0.wait(limit, VecDeque::pop_front)
    }
}

impl<R: Send + 'static> Queue<R> {
    /// Returns a closure for a task: it puts into the queue what `wrap` makes of the result of `f`.
    pub(super) fn feed<T>(
        &self,
        f: impl FnOnce() -> T + Send + 'static,
        wrap: impl FnOnce(Result<T, Panic>) -> R + Send + 'static,
    ) -> impl FnOnce() + Send + 'static {
        let queue = Arc::clone(&self.0);
        move || {
            let result = caught(f).map_err(Panic::new);
            queue.change(|results| results.push_back(wrap(result)));
        }
    }
}
