//! The side of the mailbox of the one who works: the *runner*.

use super::word::{END, HOLD, ROOM, URGENT};
use super::{Mailbox, Overflow, Phase, Shared, Work};
use crate::time::{Late, Limit};
use pirn::thread::{self, Thread};
use std::collections::VecDeque;

/// What the runner has taken and not begun, in order.
pub(crate) struct Batch<T>(VecDeque<T>);

impl<T> Batch<T> {
    pub(crate) const fn new() -> Batch<T> {
        Batch(VecDeque::new())
    }
}

/// What a runner does next.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// It handles this.
    Item(T),
    /// It leaves: the next item starts another one.
    Idle,
    /// It leaves: [`Mailbox::release`] starts another one.
    Held,
    /// It ends the actor, and calls [`Mailbox::finish`].
    End(Phase),
}

impl<T> Mailbox<T> {
    /// Says which thread the runner is.
    pub(crate) fn enter(&self, thread: Thread) {
        let mut shared = self.lock();
        if shared.phase == Phase::Killing {
            thread.interrupt();
        }
        shared.work = Work::Running(Some(thread));
    }

    /// Begins the next item.
    pub(crate) fn next(&self, batch: &mut Batch<T>) -> Next<T> {
        if !batch.0.is_empty() && self.word.try_begin(self.stride()) {
            return Next::Item(batch.0.pop_front().expect("it is not empty"));
        }
        self.next_by_flags(batch)
    }

    /// Does the same under the lock.
    fn next_by_flags(&self, batch: &mut Batch<T>) -> Next<T> {
        let mut shared = self.lock();
        let flags = self.word.flags();
        if flags & END != 0 {
            return Next::End(shared.phase);
        }
        if flags & HOLD != 0 {
            self.word.clear(HOLD);
            self.give_back(&mut shared, batch);
            shared.work = Work::Held;
            thread::take_interrupt();
            return Next::Held;
        }
        if flags & URGENT != 0 {
            if let Some(item) = shared.urgent.pop_front() {
                return self.begin_item(&mut shared, item);
            }
            self.word.clear(URGENT);
        }
        if batch.0.is_empty() {
            if flags & ROOM != 0 {
                self.admit(&mut shared, self.begun());
            }
            self.take(&mut shared, batch);
        }
        match batch.0.pop_front() {
            Some(item) => self.begin_item(&mut shared, item),
            None if shared.phase == Phase::Closing => Next::End(Phase::Closing),
            None => {
                shared.work = Work::Idle;
                Next::Idle
            }
        }
    }

    /// Counts an item as begun, and lets those in who wait for room.
    fn begin_item(&self, shared: &mut Shared<T>, item: T) -> Next<T> {
        if let Some(begun) = self.word.begin() {
            self.admit(shared, begun);
        }
        Next::Item(item)
    }

    /// Takes all items. Where the oldest may have to be dropped, takes one.
    fn take(&self, shared: &mut Shared<T>, batch: &mut Batch<T>) {
        if self.overflow == Overflow::DropOld {
            batch.0.extend(shared.queue.pop_front());
        } else {
            core::mem::swap(&mut shared.queue, &mut batch.0);
        }
    }

    /// Puts back what has not been begun.
    fn give_back(&self, shared: &mut Shared<T>, batch: &mut Batch<T>) {
        for item in batch.0.drain(..).rev() {
            shared.queue.push_front(item);
        }
    }

    /// Ends the runner's work for now, after a failure: the items wait for [`Mailbox::release`].
    pub(crate) fn pause(&self, batch: &mut Batch<T>) -> Next<T> {
        let mut shared = self.lock();
        if shared.phase > Phase::Closing {
            return Next::End(shared.phase);
        }
        self.give_back(&mut shared, batch);
        shared.work = Work::Held;
        thread::take_interrupt();
        Next::Held
    }

    /// Lets time pass until `limit`, unless the runner has to hear of something before: the end, or
    /// that it is to be held.
    pub(crate) fn rest(&self, batch: &Batch<T>, limit: Limit) {
        let this = thread::current();
        loop {
            {
                let mut shared = self.lock();
                let is_called = self.word.flags() & (END | HOLD) != 0;
                let is_last =
                    shared.phase == Phase::Closing && batch.0.is_empty() && !shared.has_items();
                if is_called || is_last || limit.is_past() {
                    shared.work = Work::Running(Some(this));
                    return;
                }
                shared.work = Work::Resting(this.clone());
            }
            if limit.park() == Err(Late::Interrupted) {
                // There is no message that it could be for.
                thread::take_interrupt();
            }
        }
    }

    /// Clears an interrupt that was meant for the item that is over, unless the actor is to end.
    pub(crate) fn clear_interrupt(&self) {
        if thread::is_interrupted() {
            let shared = self.lock();
            if shared.phase != Phase::Killing {
                thread::take_interrupt();
            }
        }
    }

    /// Ends the mailbox, and returns what was never begun. Nobody interrupts the runner any more.
    pub(crate) fn finish(&self, batch: Batch<T>) -> impl Iterator<Item = T> + use<T> {
        let mut shared = self.lock();
        shared.phase = Phase::Ended;
        shared.work = Work::Idle;
        shared.line.wake_all();
        thread::take_interrupt();
        let urgent = core::mem::take(&mut shared.urgent);
        let queue = core::mem::take(&mut shared.queue);
        urgent.into_iter().chain(batch.0).chain(queue)
    }
}
