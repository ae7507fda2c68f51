//! The life of an executor (open, shut down, terminated) and of its tasks, from submission to end.
//!
//! The tasks are kept in several maps, each under its own lock, so that threads that submit and end
//! tasks seldom contend. Shutting down closes one map after the other. A closed map that is empty
//! stays empty, and the executor has terminated when all maps are closed and empty.

use super::cell::Interrupt;
use super::watched::{GaveUp, WaitLimit, Watched};
use core::cell::Cell;
use core::ptr;
use core::sync::atomic::{AtomicBool, Ordering};
use pirn_rt::poison::locked;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

const SHARDS: usize = 16;

#[derive(Default)]
struct TaskShard {
    /// Keyed by the addresses of their cells. (A hash table would have to be shrunk after a flood,
    /// and is not faster.)
    tasks: BTreeMap<usize, Arc<dyn Interrupt>>,
    /// Whether no more tasks may enter.
    closed: bool,
}

pub(super) struct Lifecycle {
    shards: [Mutex<TaskShard>; SHARDS],
    /// Set before the first shard is closed, so that a caller that was refused once is always
    /// refused.
    shut_down: AtomicBool,
    /// The number of shards that are not both closed and empty. Watchers are woken when it becomes
    /// 0.
    busy: Watched<usize>,
}

thread_local! {
    /// The executor that the running thread belongs to, by its address.
    static OWN: Cell<*const Lifecycle> = const { Cell::new(ptr::null()) };
}

impl Lifecycle {
    pub(super) fn new() -> Lifecycle {
        Lifecycle {
            shards: Default::default(),
            shut_down: AtomicBool::new(false),
            busy: Watched::new(SHARDS),
        }
    }

    pub(super) fn is_shut_down(&self) -> bool {
        self.shut_down.load(Ordering::SeqCst)
    }

    pub(super) fn is_terminated(&self) -> bool {
        self.busy.with(|busy| *busy == 0)
    }

    /// Returns the number of tasks that have not ended.
    pub(super) fn running(&self) -> usize {
        self.shards
            .iter()
            .map(|shard| locked(shard).tasks.len())
            .sum()
    }

    /// Shuts down. When this returns, no more tasks can enter.
    pub(super) fn shut_down(&self) {
        self.shut_down.store(true, Ordering::SeqCst);
        for shard in &self.shards {
            let mut shard = locked(shard);
            if shard.closed {
                continue;
            }
            shard.closed = true;
            if shard.tasks.is_empty() {
                drop(shard);
                self.shard_is_done();
            }
        }
    }

    fn shard_is_done(&self) {
        self.busy.change(|busy| *busy -= 1);
    }

    /// Shuts down, and interrupts all tasks.
    pub(super) fn stop(&self) {
        self.shut_down();
        for shard in &self.shards {
            let tasks: Vec<_> = locked(shard).tasks.values().cloned().collect();
            for task in tasks {
                task.interrupt(); // Outside the lock, because this calls the user's listeners.
            }
        }
    }

    pub(super) fn await_termination(&self, limit: WaitLimit) -> Result<(), GaveUp> {
        self.busy.wait(limit, |busy| (*busy == 0).then_some(()))
    }

    /// Shuts down and waits until all tasks have ended. An interrupt meanwhile is passed on to the
    /// tasks, and the thread's flag stays set.
    pub(super) fn close(&self) {
        self.shut_down();
        if OWN.get() == ptr::from_ref(self) {
            return; // It would wait for itself.
        }
        let limit = WaitLimit::UNTIL_INTERRUPTED;
        if self.await_termination(limit) == Err(GaveUp::Interrupted) {
            self.stop();
            self.busy.wait_forever(|busy| (*busy == 0).then_some(()));
        }
    }

    fn shard(&self, key: usize) -> &Mutex<TaskShard> {
        &self.shards[(key >> 6) % SHARDS] // Neighbours in memory are some cache lines apart.
    }
}

/// Keeps a task in the maps of its executor until it is dropped.
pub(super) struct Membership {
    lifecycle: Arc<Lifecycle>,
    /// The task's key in its map.
    key: usize,
}

impl Membership {
    /// Adds a task. Returns `None` if the executor has been shut down.
    pub(super) fn enter(
        lifecycle: &Arc<Lifecycle>,
        task: Arc<dyn Interrupt>,
    ) -> Option<Membership> {
        let key = Arc::as_ptr(&task).addr();
        let mut shard = locked(lifecycle.shard(key));
        if shard.closed || lifecycle.is_shut_down() {
            return None;
        }
        shard.tasks.insert(key, task);
        drop(shard);
        Some(Membership {
            lifecycle: Arc::clone(lifecycle),
            key,
        })
    }

    /// Marks the running thread, which is new, as one of a task, until the guard is dropped.
    pub(super) fn adopt_thread(&self) -> OwnThread {
        OWN.set(Arc::as_ptr(&self.lifecycle));
        OwnThread
    }
}

/// Marks the thread of a task as such while it exists.
pub(super) struct OwnThread;

impl Drop for OwnThread {
    fn drop(&mut self) {
        OWN.set(ptr::null());
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        let mut shard = locked(self.lifecycle.shard(self.key));
        let task = shard.tasks.remove(&self.key);
        let was_last = shard.closed && shard.tasks.is_empty();
        drop(shard);
        drop(task); // Outside the lock, as the result may be dropped with it; before the end.
        if was_last {
            self.lifecycle.shard_is_done();
        }
    }
}
