//! Changes on their way to the subscribers of something that is watched.
//!
//! Changes are queued under the lock of what changes, and told without it: by the thread whose
//! change comes into an idle feed, with all that are queued meanwhile. So subscribers learn of all
//! changes, in order, and each begins where the one before has ended.
//!
//! ```text
//!   set:  lock; change; queue; unlock;  then, unless a thread is telling:  tell all that is queued
//! ```

use super::Topic;
use crate::poison::locked;
use std::collections::VecDeque;
use std::sync::Mutex;

pub(super) struct Feed<C: 'static> {
    pub(super) topic: Topic<C>,
    queue: Mutex<Queue<C>>,
}

struct Queue<C> {
    changes: VecDeque<C>,
    is_telling: bool,
}

impl<C: Clone + Send + 'static> Feed<C> {
    pub(super) fn new() -> Feed<C> {
        Feed {
            topic: Topic::new(),
            queue: Mutex::new(Queue {
                changes: VecDeque::new(),
                is_telling: false,
            }),
        }
    }

    /// Queues a change. Called under the lock of what changes.
    pub(super) fn queue(&self, change: C) {
        locked(&self.queue).changes.push_back(change);
    }

    /// Tells what is queued, unless another thread does. Called without a lock.
    pub(super) fn tell(&self) {
        {
            let mut queue = locked(&self.queue);
            if queue.is_telling {
                return;
            }
            queue.is_telling = true;
        }
        let telling = Telling(&self.queue);
        while let Some(change) = telling.next() {
            self.topic.publish(change);
        }
        core::mem::forget(telling);
    }
}

/// This thread tells. A panic of the program's, in a `clone`, ends that.
struct Telling<'a, C>(&'a Mutex<Queue<C>>);

impl<C> Telling<'_, C> {
    /// Returns the next change. If there is none, the next one is told by another thread.
    fn next(&self) -> Option<C> {
        let mut queue = locked(self.0);
        let change = queue.changes.pop_front();
        queue.is_telling = change.is_some();
        change
    }
}

impl<C> Drop for Telling<'_, C> {
    fn drop(&mut self) {
        locked(self.0).is_telling = false;
    }
}
