//! The runner's side of the mailbox.

use super::word::{END, HOLD, ROOM, URGENT};
use super::{Mailbox, Overflow, Phase, Shared, Work};
use crate::time::{Late, Limit};
use pirn::thread::{self, Thread};
use std::collections::VecDeque;

/// The items that a runner has taken.
pub(crate) struct Batch<T> {
    /// Items that it has taken and not begun, in order.
    items: VecDeque<T>,
    /// The runner's thread, if the mailbox does not know it yet.
    enters: Option<Thread>,
}

impl<T> Batch<T> {
    pub(crate) const fn new() -> Batch<T> {
        Batch {
            items: VecDeque::new(),
            enters: None,
        }
    }

    /// Returns the batch of a thread that has not called [`enter`](Mailbox::enter). The mailbox
    /// learns of the thread when it takes the first item, under the same lock.
    pub(crate) const fn of(thread: Thread) -> Batch<T> {
        Batch {
            items: VecDeque::new(),
            enters: Some(thread),
        }
    }
}

/// What a runner does next.
#[derive(Debug)]
pub(crate) enum Next<T> {
    /// It handles this item.
    Item(T),
    /// It leaves. The next item starts another runner.
    Idle,
    /// It leaves. [`Mailbox::release`] starts another runner.
    Held,
    /// It ends the actor, and calls [`Mailbox::finish`].
    End(Phase),
}

impl<T> Mailbox<T> {
    /// Notes that the running thread, `this`, is the runner.
    pub(crate) fn enter(&self, this: Thread) {
        let mut shared = self.lock();
        shared.work = Work::Running;
        shared.runner = Some(this);
        let is_killed = shared.phase == Phase::Killing;
        drop(shared);
        if is_killed {
            thread::current().interrupt();
        }
    }

    /// Begins the next item.
    pub(crate) fn next(&self, batch: &mut Batch<T>) -> Next<T> {
        if !batch.items.is_empty() && self.word.try_begin(self.stride()) {
            return Next::Item(batch.items.pop_front().expect("it is not empty"));
        }
        self.next_by_flags(batch)
    }

    /// Begins the next item under the lock.
    fn next_by_flags(&self, batch: &mut Batch<T>) -> Next<T> {
        // A thread that interrupts sets a flag before, so no item is begun meanwhile.
        let mut shared = self.lock_settled();
        if batch.enters.is_some() {
            shared.runner = batch.enters.take();
        }
        let flags = self.word.flags();
        if flags & END != 0 {
            return Next::End(shared.phase);
        }
        if flags & HOLD != 0 {
            self.word.clear(HOLD);
            self.give_back(&mut shared, batch);
            shared.leave(Work::Held);
            thread::take_interrupt();
            return Next::Held;
        }
        if flags & URGENT != 0 {
            if let Some(item) = shared.extra().urgent.pop_front() {
                return self.begin_item(&mut shared, item);
            }
            self.word.clear(URGENT);
        }
        if batch.items.is_empty() {
            if flags & ROOM != 0 {
                self.admit(&mut shared, self.begun());
            }
            self.take(&mut shared, batch);
        }
        match batch.items.pop_front() {
            Some(item) => self.begin_item(&mut shared, item),
            None if shared.phase == Phase::Closing => Next::End(Phase::Closing),
            None => {
                shared.idle();
                Next::Idle
            }
        }
    }

    /// Counts an item as begun, and lets senders in for which there is room.
    fn begin_item(&self, shared: &mut Shared<T>, item: T) -> Next<T> {
        if let Some(begun) = self.word.begin() {
            self.admit(shared, begun);
        }
        Next::Item(item)
    }

    /// Takes all items. Takes only one if overflow may have to drop the oldest.
    fn take(&self, shared: &mut Shared<T>, batch: &mut Batch<T>) {
        if self.overflow == Overflow::DropOld {
            batch.items.extend(shared.queue.pop_front());
        } else {
            core::mem::swap(&mut shared.queue, &mut batch.items);
        }
    }

    /// Puts items back that were not begun.
    fn give_back(&self, shared: &mut Shared<T>, batch: &mut Batch<T>) {
        for item in batch.items.drain(..).rev() {
            shared.queue.push_front(item);
        }
    }

    /// Holds the mailbox after a failure: the items wait for [`Mailbox::release`].
    pub(crate) fn pause(&self, batch: &mut Batch<T>) -> Next<T> {
        let mut shared = self.lock_settled();
        if shared.phase > Phase::Closing {
            return Next::End(shared.phase);
        }
        self.give_back(&mut shared, batch);
        shared.leave(Work::Held);
        thread::take_interrupt();
        Next::Held
    }

    /// Rests until `limit`, or until the mailbox is to end or to be held.
    pub(crate) fn rest(&self, batch: &Batch<T>, limit: Limit) {
        loop {
            {
                let mut shared = self.lock();
                let is_called = self.word.flags() & (END | HOLD) != 0;
                let is_last =
                    shared.phase == Phase::Closing && batch.items.is_empty() && !shared.has_items();
                if is_called || is_last || limit.is_past() {
                    shared.work = Work::Running;
                    return;
                }
                shared.work = Work::Resting;
            }
            if limit.park() == Err(Late::Interrupted) {
                // No message is being handled that the interrupt could be for.
                thread::take_interrupt();
            }
        }
    }

    /// Clears an interrupt that was meant for the item before, unless the actor was killed.
    pub(crate) fn clear_interrupt(&self) {
        if thread::is_interrupted() {
            let shared = self.lock();
            if shared.phase != Phase::Killing {
                thread::take_interrupt();
            }
        }
    }

    /// Ends the mailbox, and returns the items that were never begun. No thread interrupts the
    /// runner after this.
    pub(crate) fn finish(&self, batch: Batch<T>) -> impl Iterator<Item = T> + use<T> {
        let mut shared = self.lock_settled();
        shared.phase = Phase::Ended;
        self.word.set(END);
        shared.leave(Work::Idle);
        shared.wake_line();
        thread::take_interrupt();
        let extra = shared.extra.as_deref_mut();
        let urgent = extra.map(|extra| core::mem::take(&mut extra.urgent));
        let queue = core::mem::take(&mut shared.queue);
        let urgent = urgent.into_iter().flatten();
        urgent.chain(batch.items).chain(queue)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Patience, Then};
    use super::*;
    use crate::identity::Identity;
    use std::sync::mpsc;

    /// Calls `leave` on a runner's thread while an interrupt of it is under way. Returns true if an
    /// interrupt reaches the runner after that.
    fn is_interrupted_after(
        leave: impl FnOnce(&Mailbox<u32>, &mut Batch<u32>) + Send,
        phase: Phase,
    ) -> bool {
        let mailbox = Mailbox::new(1, Overflow::Wait);
        assert_eq!(mailbox.begin(), Then::Start);
        let (enters, entered) = mpsc::channel();
        let (tell, told) = mpsc::channel::<()>();
        let mailbox = &mailbox;
        std::thread::scope(|s| {
            let runner = s.spawn(move || {
                mailbox.enter(thread::current());
                enters.send(()).unwrap();
                told.recv().unwrap();
                leave(mailbox, &mut Batch::new());
                // The interrupting thread has released the lock, and is about to interrupt.
                let left = mailbox.lock().interrupts;
                thread::is_interrupted() || left > 0
            });
            entered.recv().unwrap();
            let interrupted = {
                let mut shared = mailbox.lock();
                shared.phase = phase;
                mailbox
                    .word
                    .set(if phase == Phase::Open { HOLD } else { END });
                shared.begin_interrupt()
            };
            tell.send(()).unwrap();
            // Lets the runner overtake the interrupt, if it does not wait for it.
            (0..100).for_each(|_| std::thread::yield_now());
            mailbox.interrupt(interrupted);
            runner.join().unwrap()
        })
    }

    #[test]
    fn no_interrupt_is_under_way_when_the_runner_has_left() {
        let held = |mailbox: &Mailbox<u32>, batch: &mut Batch<u32>| {
            assert!(matches!(mailbox.next(batch), Next::Held));
        };
        let paused = |mailbox: &Mailbox<u32>, batch: &mut Batch<u32>| {
            assert!(matches!(mailbox.pause(batch), Next::Held));
        };
        let ended = |mailbox: &Mailbox<u32>, batch: &mut Batch<u32>| {
            assert!(matches!(mailbox.next(batch), Next::End(Phase::Killing)));
            drop(mailbox.finish(Batch::new()));
        };
        for _ in 0..20 {
            assert!(!is_interrupted_after(held, Phase::Open));
            assert!(!is_interrupted_after(paused, Phase::Open));
            assert!(!is_interrupted_after(ended, Phase::Killing));
        }
    }

    #[test]
    fn an_idle_mailbox_keeps_room_for_one_item_only() {
        let (mailbox, mut batch) = (Mailbox::new(100, Overflow::Wait), Batch::new());
        for burst in [1, 1, 100, 1] {
            for item in 0..burst {
                let at = Identity::new(None);
                assert!(mailbox.push(item, Patience::None, &at, |_| ()).is_ok());
            }
            for item in 0..burst {
                assert!(matches!(mailbox.next(&mut batch), Next::Item(next) if next == item));
            }
            assert!(matches!(mailbox.next(&mut batch), Next::Idle));
            assert!(mailbox.lock().queue.capacity() <= 1);
            batch = Batch::new(); // a batch of another runner
        }
    }
}
