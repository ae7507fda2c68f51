//! How a pool ends: as one actor does, with all of its workers.
//!
//! The workers of a closed pool handle the messages that wait, and one that finds none left ends. A
//! stop or a kill of the pool stops or kills its workers. A worker that ends by itself, because its
//! handler ends it or its restarts are used up, ends the pool in the same way. The last worker to
//! end, or to retire, ends the pool.

use super::cell::{PoolCell, Shared};
use crate::actor::{Item, exit, undelivered};
use crate::error::{Exit, Failure, discard};
use crate::life::Actor;
use crate::mailbox::Phase;
use crate::snapshot;
use std::sync::Arc;

impl<S: Send + 'static> PoolCell<S> {
    /// Ends the pool in this phase, unless it ends in a stricter one already.
    pub(super) fn end_with(&self, phase: Phase, failure: Option<Failure>) {
        let mut shared = self.lock();
        if shared.phase >= phase {
            return;
        }
        if shared.phase <= Phase::Closing {
            shared.failure = failure;
        }
        shared.phase = phase;
        // Senders that wait for room take their messages back.
        shared.line.wake_all();
        if phase == Phase::Closing {
            let deferred = self.call_worker(&mut shared);
            drop(shared);
            return self.perform(deferred);
        }
        shared.free.clear();
        let workers: Vec<_> = shared.workers.values().cloned().collect();
        drop(shared);
        for worker in workers {
            worker.end(match phase {
                Phase::Killing => Phase::Killing,
                _ => Phase::Stopping,
            });
        }
    }

    /// Notes that a worker has ended. Called on its thread.
    pub(super) fn ended(&self, number: u64, how: &Exit) {
        // A retired worker was meant to end. Any other one ends because the pool does, or ends the
        // pool.
        if !self.lock().leave(number) {
            match how {
                Exit::Failed(failure) => self.end_with(Phase::Stopping, Some(failure.clone())),
                Exit::Killed => self.end(Phase::Killing),
                Exit::Stopped => self.end(Phase::Stopping),
                _ => self.end(Phase::Closing),
            }
        }
        let mut shared = self.lock();
        shared.alive -= 1;
        if shared.alive > 0 {
            return;
        }
        if shared.phase == Phase::Closing && shared.ready.waiting() > 0 {
            // The last worker has closed itself. Another one handles the messages that are left.
            let deferred = shared.add_worker();
            drop(shared);
            return self.perform(deferred);
        }
        drop(shared);
        self.finish();
    }

    /// Publishes the end of the pool, after its last worker.
    fn finish(&self) {
        let mut shared = self.lock();
        let failed = shared.failure.take().map(Exit::Failed);
        let how = failed.unwrap_or_else(|| exit(shared.phase));
        shared.phase = Phase::Ended;
        let left = shared.ready.take_all();
        let make = shared.make.take();
        drop(shared);
        undelivered(left, Item::name, &self.options);
        discard(make);
        snapshot::forget(self.identity());
        self.life.ending.publish(&how);
    }
}

impl<S: Send + 'static> Shared<S> {
    /// Takes out a worker that has ended. Returns true if it had retired.
    fn leave(&mut self, number: u64) -> bool {
        let worker = self.workers.remove(&number);
        let worker = worker.expect("it is there until it has ended");
        if worker.is_retired.take() {
            return true;
        }
        self.active -= 1;
        self.called -= usize::from(worker.is_called.take());
        self.making -= usize::from(worker.is_made.take());
        self.free.retain(|free| !Arc::ptr_eq(free, &worker));
        false
    }
}
