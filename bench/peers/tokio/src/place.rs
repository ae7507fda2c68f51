//! A place for tasks to meet.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use tokio::sync::Notify;

/// Where tasks arrive and wait until they are woken, all at once. One `Notify` for all of them is
/// the cheapest way that tokio has to wait: the waiter is part of the task, and nothing else is
/// allocated.
pub struct Place {
    missing: AtomicU64,
    complete: Notify,
    wake: Notify,
}

impl Place {
    /// As many tasks as `count` will come.
    pub fn for_tasks(count: u64) -> Arc<Place> {
        Arc::new(Place {
            missing: AtomicU64::new(count),
            complete: Notify::new(),
            wake: Notify::new(),
        })
    }

    pub fn arrive(&self) {
        if self.missing.fetch_sub(1, SeqCst) == 1 {
            self.complete.notify_one();
        }
    }

    /// Waits until all have arrived; for one waiter, once.
    pub async fn all_here(&self) {
        if self.missing.load(SeqCst) > 0 {
            self.complete.notified().await;
        }
    }

    /// Arrives, and waits for `wake_all`.
    pub async fn stay(&self) {
        // From here on `wake_all` reaches it, though it has not been polled.
        let woken = self.wake.notified();
        self.arrive();
        woken.await;
    }

    pub fn wake_all(&self) {
        self.wake.notify_waiters();
    }
}
