//! What a generator's producers and its consumer share.

use crate::poison::locked;
use crate::time::{Late, Limit};
use core::fmt;
use pirn::thread::{self, Interrupted, Thread};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) struct Exchange<T>(Mutex<Shared<T>>);

struct Shared<T> {
    /// What has been given and not been taken, in order.
    queue: VecDeque<T>,
    /// The number of items that may still be given.
    room: usize,
    /// Producers that wait for room, in order of arrival.
    producers: VecDeque<Thread>,
    /// The consumer, if it waits.
    consumer: Option<Thread>,
    /// The number of producers that have not ended, and one while more are being started.
    running: usize,
    /// Nothing is to be given any more: a producer has failed, or the consumer is gone.
    is_closed: bool,
}

/// What the consumer has got.
pub(super) enum Taken {
    Items,
    /// All producers have ended, or one has failed.
    End,
    Late(Late),
}

impl<T> Shared<T> {
    /// Wakes as many producers as there is room for. Each is out of the line then.
    fn wake_producers(&mut self) {
        let wakes = if self.is_closed {
            self.producers.len()
        } else {
            self.room.min(self.producers.len())
        };
        for producer in self.producers.drain(..wakes) {
            producer.unpark();
        }
    }

    fn wake_consumer(&mut self) {
        if let Some(consumer) = self.consumer.take() {
            consumer.unpark();
        }
    }

    /// Takes the running thread out of the line of those who wait.
    fn leave_line(&mut self) {
        let this = thread::current().id();
        self.producers.retain(|producer| producer.id() != this);
    }

    /// One producer less.
    fn ended(&mut self) {
        self.running -= 1;
        if self.running == 0 {
            self.wake_consumer();
        }
    }
}

impl<T> Exchange<T> {
    pub(super) fn new(ahead: usize) -> Exchange<T> {
        Exchange(Mutex::new(Shared {
            queue: VecDeque::new(),
            room: ahead,
            producers: VecDeque::new(),
            consumer: None,
            running: 1,
            is_closed: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        locked(&self.0)
    }

    /// No more producers are started.
    pub(super) fn all_started(&self) {
        self.lock().ended();
    }

    fn give(&self, item: T) -> Result<(), Interrupted> {
        let mut shared = self.lock();
        while shared.room == 0 && !shared.is_closed {
            shared.producers.push_back(thread::current());
            drop(shared);
            let parked = thread::park_interruptible();
            shared = self.lock();
            shared.leave_line();
            if parked.is_err() {
                // The room that it was woken for, perhaps, is for others.
                shared.wake_producers();
                return Err(Interrupted);
            }
        }
        if shared.is_closed {
            return Err(Interrupted);
        }
        shared.room -= 1;
        shared.queue.push_back(item);
        let consumer = shared.consumer.take();
        drop(shared);
        // Without the lock, which is the first thing that it wants.
        if let Some(consumer) = consumer {
            consumer.unpark();
        }
        Ok(())
    }

    /// Makes room for as many items, which have been used.
    pub(super) fn make_room(&self, used: usize) {
        let mut shared = self.lock();
        shared.room += used;
        shared.wake_producers();
    }

    /// Makes room, and waits for items, into an empty batch.
    pub(super) fn take(&self, batch: &mut VecDeque<T>, used: usize, limit: Limit) -> Taken {
        let mut used = used;
        loop {
            {
                let mut shared = self.lock();
                shared.room += core::mem::take(&mut used);
                shared.wake_producers();
                shared.consumer = None;
                if !shared.queue.is_empty() {
                    core::mem::swap(&mut shared.queue, batch);
                    return Taken::Items;
                }
                if shared.running == 0 || shared.is_closed {
                    return Taken::End;
                }
                shared.consumer = Some(thread::current());
            }
            if let Err(late) = limit.park() {
                self.lock().consumer = None;
                return Taken::Late(late);
            }
        }
    }

    /// Has all further gives fail. What has been given can still be taken.
    pub(super) fn close(&self) {
        let mut shared = self.lock();
        shared.is_closed = true;
        shared.wake_producers();
        shared.wake_consumer();
    }

    /// Returns what has been given and not been taken.
    pub(super) fn take_rest(&self) -> VecDeque<T> {
        core::mem::take(&mut self.lock().queue)
    }

    /// Waits until all producers have ended, after [`close`](Exchange::close).
    pub(super) fn wait_for_end(&self) {
        loop {
            {
                let mut shared = self.lock();
                if shared.running == 0 {
                    return;
                }
                shared.consumer = Some(thread::current());
            }
            thread::park();
        }
    }
}

/// Where a producer gives its items: see [`generate`](crate::generate).
///
/// # Examples
/// ```
/// use pirn::thread::Interrupted;
/// use pirn_actor::{self as actor, Out};
///
/// fn countdown(out: &mut Out<u32>) -> Result<(), Interrupted> {
///     (0..=3).rev().try_for_each(|n| out.give(n))
/// }
/// assert!(actor::generate(8, countdown).flatten().eq([3, 2, 1, 0]));
/// ```
pub struct Out<T>(Arc<Exchange<T>>);

impl<T> Out<T> {
    /// Counts a producer.
    pub(super) fn new(exchange: Arc<Exchange<T>>) -> Out<T> {
        exchange.lock().running += 1;
        Out(exchange)
    }

    /// Hands an item over. Parks while there is no room: while as many items as the generator may
    /// be ahead have not been used.
    ///
    /// # Errors
    /// The generator has been dropped, or is over because another producer has failed; or the
    /// thread was interrupted while there was no room. The item is dropped.
    pub fn give(&mut self, item: T) -> Result<(), Interrupted> {
        self.0.give(item)
    }

    /// Ends the iteration, after what has been given.
    pub(super) fn close(&self) {
        self.0.close();
    }
}

impl<T> Drop for Out<T> {
    fn drop(&mut self) {
        self.0.lock().ended();
    }
}

impl<T> fmt::Debug for Out<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out")
            .field("is_closed", &self.0.lock().is_closed)
            .finish()
    }
}
