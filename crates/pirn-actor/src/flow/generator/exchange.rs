//! What a generator's producers and its consumer share.

use crate::error::Payload;
use crate::poison::locked;
use crate::time::{Late, Limit};
use core::fmt;
use pirn::thread::{self, Interrupted, Thread};
use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};

pub(super) struct Exchange<T, E>(Mutex<Shared<T, E>>);

struct Shared<T, E> {
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
    /// The first failure.
    failure: Option<Failed<E>>,
    /// Nothing is to be given any more.
    is_closed: bool,
}

enum Failed<E> {
    Error(E),
    Panic(Payload),
}

/// What the consumer has got.
pub(super) enum Taken<E> {
    Items,
    /// All producers have ended.
    End,
    Error(E),
    Panic(Payload),
    Late(Late),
}

impl<T, E> Shared<T, E> {
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

impl<T, E> Exchange<T, E> {
    pub(super) fn new(ahead: usize) -> Exchange<T, E> {
        Exchange(Mutex::new(Shared {
            queue: VecDeque::new(),
            room: ahead,
            producers: VecDeque::new(),
            consumer: None,
            running: 1,
            failure: None,
            is_closed: false,
        }))
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T, E>> {
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
    pub(super) fn take(&self, batch: &mut VecDeque<T>, used: usize, limit: Limit) -> Taken<E> {
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
                match shared.failure.take() {
                    Some(Failed::Error(error)) => return Taken::Error(error),
                    Some(Failed::Panic(payload)) => return Taken::Panic(payload),
                    None if shared.running == 0 => return Taken::End,
                    None => shared.consumer = Some(thread::current()),
                }
            }
            if let Err(late) = limit.park() {
                self.lock().consumer = None;
                return Taken::Late(late);
            }
        }
    }

    /// Has all further gives fail. Returns what has not been taken.
    pub(super) fn close(&self) -> impl Sized + use<T, E> {
        let mut shared = self.lock();
        shared.is_closed = true;
        shared.wake_producers();
        (core::mem::take(&mut shared.queue), shared.failure.take())
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
pub struct Out<T, E>(Arc<Exchange<T, E>>);

impl<T, E> Out<T, E> {
    /// Counts a producer.
    pub(super) fn new(exchange: Arc<Exchange<T, E>>) -> Out<T, E> {
        exchange.lock().running += 1;
        Out(exchange)
    }

    /// Hands an item over. Parks while there is no room: while as many items as the generator may be
    /// ahead have not been used.
    ///
    /// # Errors
    /// The generator has been dropped, or is over because another producer has failed; or the thread
    /// was interrupted while there was no room. The item is dropped.
    pub fn give(&mut self, item: T) -> Result<(), Interrupted> {
        self.0.give(item)
    }

    /// Runs a producer.
    pub(super) fn run(&mut self, produce: impl FnOnce(&mut Out<T, E>) -> Result<(), E>) {
        let failure = match catch_unwind(AssertUnwindSafe(|| produce(self))) {
            Ok(Ok(())) => return,
            Ok(Err(error)) => Failed::Error(error),
            Err(payload) => Failed::Panic(payload),
        };
        let mut shared = self.0.lock();
        // Later ones follow from the first, which interrupts the others, or nobody wants them.
        if shared.failure.is_some() || shared.is_closed {
            drop(shared);
            // The program's: it may panic.
            let _ = catch_unwind(AssertUnwindSafe(|| drop(failure)));
            return;
        }
        shared.failure = Some(failure);
        shared.is_closed = true;
        shared.wake_producers();
        shared.wake_consumer();
    }
}

impl<T, E> Drop for Out<T, E> {
    fn drop(&mut self) {
        self.0.lock().ended();
    }
}

impl<T, E> fmt::Debug for Out<T, E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Out")
            .field("is_closed", &self.0.lock().is_closed)
            .finish()
    }
}
