//! Readiness of a descriptor: no event and no close is lost between an attempt and going to sleep,
//! and no reader sleeps while there is something to read.
//!
//! The readers' loop is the one in `blocking/fds/readiness.rs`. The kernel's side of the descriptor
//! is a number of items, which an attempt reads without any ordering.
//!
//! Each ordering has been weakened once, and each step of the protocol has been left out once, to
//! see a model fail.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::blocking::wait::{Outcome, Wait};
use crate::check;
use crate::fd_waiters::FdWaiter;
use crate::fd_waiters::Interest::{self, Read, Write};
use crate::readiness::{Event, Readiness};
use crate::surroundings::spawn;
use crate::time::Deadline;

pub struct World {
    pub readiness: Readiness,
    /// The numbers of items that can be read, and written, without blocking.
    items: [AtomicUsize; 2],
    open: AtomicBool,
}

/// How an operation ended.
#[derive(PartialEq, Debug)]
pub enum End {
    Done,
    TimedOut,
    Closed,
}

impl World {
    pub fn new() -> Arc<Self> {
        Arc::new(Self {
            readiness: Readiness::new(),
            items: [AtomicUsize::new(0), AtomicUsize::new(0)],
            open: AtomicBool::new(true),
        })
    }

    /// Adds items, which the poller reports as one event.
    pub fn arrive(&self, interest: Interest, count: usize) {
        self.items[interest as usize].fetch_add(count, Relaxed);
        self.readiness.report(0, event(interest));
    }

    /// Returns `None` for `EAGAIN`.
    pub fn attempt(&self, interest: Interest) -> Option<End> {
        if !self.open.load(Relaxed) {
            return Some(End::Closed);
        }
        let items = &self.items[interest as usize];
        let mut seen = items.load(Relaxed);
        while seen > 0 {
            match items.compare_exchange(seen, seen - 1, Relaxed, Relaxed) {
                Ok(_) => return Some(End::Done),
                Err(now) => seen = now,
            }
        }
        None
    }

    fn perform(&self, interest: Interest, deadline: Deadline) -> End {
        let readiness = &self.readiness;
        let generation = readiness.generation();
        let mut count = readiness.count(interest);
        if let Some(end) = self.attempt(interest) {
            return end;
        }
        loop {
            let since = (generation, count);
            let begin = || Ok(Wait::new());
            let end = match readiness.park_until_event(interest, since, deadline, begin, || ()) {
                Outcome::Closed => Some(End::Closed),
                Outcome::TimedOut => Some(End::TimedOut),
                _ => {
                    count = readiness.count(interest);
                    self.attempt(interest)
                }
            };
            if let Some(end) = end {
                readiness.hand_off(interest);
                return end;
            }
        }
    }

    pub fn read(&self) -> End {
        self.perform(Read, Deadline::NEVER)
    }

    /// Closes the descriptor as `fds::close` does.
    pub fn close(&self) {
        let generation = self.readiness.retire();
        self.open.store(false, Relaxed);
        self.readiness.retire_from(generation);
    }
}

/// An event after which a short read leaves nothing behind.
fn event(interest: Interest) -> Event {
    let [read, write] = [Read, Write].map(|kind| kind == interest);
    Event {
        read,
        write,
        lasting: false,
    }
}

#[test]
fn an_event_between_an_attempt_and_going_to_sleep_is_not_lost() {
    check(3, || {
        let world = World::new();
        let poller = spawn(&world, |world| world.arrive(Read, 1));
        assert_eq!(world.read(), End::Done);
        poller.join().unwrap();
    });
}

#[test]
fn a_second_event_is_not_taken_for_the_first() {
    check(3, || {
        let world = World::new();
        let poller = spawn(&world, |world| {
            world.arrive(Read, 1);
            world.arrive(Read, 1);
        });
        assert_eq!(world.read(), End::Done);
        assert_eq!(world.read(), End::Done);
        poller.join().unwrap();
    });
}

#[test]
fn one_edge_that_stands_for_two_items_serves_two_readers() {
    check(2, || {
        let world = World::new();
        let reader = spawn(&world, |world| world.read());
        let poller = spawn(&world, |world| world.arrive(Read, 2));
        assert_eq!(world.read(), End::Done);
        assert_eq!(reader.join().unwrap(), End::Done);
        poller.join().unwrap();
    });
}

#[test]
fn a_reader_that_times_out_leaves_the_event_to_another() {
    check(2, || {
        let world = World::new();
        let now = Deadline::after_nanos(0);
        let hasty = spawn(&world, move |world| world.perform(Read, now));
        let patient = spawn(&world, |world| world.read());
        world.arrive(Read, 1);
        // If the hasty reader has got the item, the other one needs another.
        if hasty.join().unwrap() == End::Done {
            world.arrive(Read, 1);
        }
        assert_eq!(patient.join().unwrap(), End::Done);
    });
}

#[test]
fn a_reader_and_a_writer_each_get_their_event() {
    check(2, || {
        let world = World::new();
        let writer = spawn(&world, |world| world.perform(Write, Deadline::NEVER));
        let poller = spawn(&world, |world| {
            world.arrive(Read, 1);
            world.arrive(Write, 1);
        });
        assert_eq!(world.read(), End::Done);
        assert_eq!(writer.join().unwrap(), End::Done);
        poller.join().unwrap();
    });
}

/// The observer sees the items before it waits, or is woken.
#[test]
fn an_observer_and_a_reader_both_learn_of_an_event() {
    check(2, || {
        let world = World::new();
        let observer = spawn(&world, |world| {
            let counts = world.readiness.counts();
            if world.items[0].load(Relaxed) > 0 {
                return;
            }
            let wait = Wait::new();
            let waiter = FdWaiter::observer(&wait, true, false);
            // SAFETY: both stay until `stop_observing`.
            unsafe {
                if world.readiness.observe(&waiter, counts, || ()) {
                    assert_eq!(wait.block_until(Deadline::NEVER), Outcome::Ready);
                }
                world.readiness.stop_observing(&waiter);
            }
        });
        let poller = spawn(&world, |world| {
            // Two, so that the observer finds one even if the reader is first.
            world.arrive(Read, 2);
        });
        assert_eq!(world.read(), End::Done);
        observer.join().unwrap();
        poller.join().unwrap();
        assert!(!world.readiness.is_awaited());
    });
}

#[test]
fn a_close_wakes_everybody() {
    check(2, || {
        let world = World::new();
        let reader = spawn(&world, |world| world.read());
        let writer = spawn(&world, |world| world.perform(Write, Deadline::NEVER));
        world.close();
        assert_eq!(reader.join().unwrap(), End::Closed);
        assert_eq!(writer.join().unwrap(), End::Closed);
    });
}

/// Between the two steps of a close the descriptor is still open.
#[test]
fn a_reader_that_comes_during_a_close_does_not_sleep_through_it() {
    check(4, || {
        let world = World::new();
        let reader = spawn(&world, |world| world.read());
        world.close();
        assert_eq!(reader.join().unwrap(), End::Closed);
    });
}

/// The file that takes over the number holds an item that no event reports.
#[test]
fn a_reader_of_the_next_life_finds_what_is_there() {
    check(3, || {
        let world = World::new();
        let reader = spawn(&world, |world| world.read());
        world.close();
        world.items[Read as usize].store(1, Relaxed);
        world.open.store(true, Relaxed);
        world.readiness.retire();
        assert_ne!(reader.join().unwrap(), End::TimedOut);
    });
}

#[test]
fn an_event_of_an_earlier_life_wakes_nobody() {
    check(3, || {
        let world = World::new();
        let late = spawn(&world, |world| world.readiness.report(0, Event::ALL));
        let generation = world.readiness.retire();
        let since = (generation, world.readiness.count(Read));
        let reader = spawn(&world, move |world| {
            let begin = || Ok(Wait::new());
            let outcome =
                world
                    .readiness
                    .park_until_event(Read, since, Deadline::NEVER, begin, || ());
            assert_eq!(outcome, Outcome::Ready);
            assert_eq!(world.items[0].load(Relaxed), 1, "woken for nothing");
        });
        late.join().unwrap();
        world.items[0].store(1, Relaxed);
        world.readiness.report(generation, event(Read));
        reader.join().unwrap();
    });
}

/// A close that comes late does not touch the waiters of the next life.
#[test]
fn a_late_close_wakes_nobody_of_the_next_life() {
    check(3, || {
        let world = World::new();
        let late = {
            let closed = world.readiness.retire();
            spawn(&world, move |world| world.readiness.retire_from(closed))
        };
        // The number is used again.
        let generation = world.readiness.retire();
        let reader = spawn(&world, move |world| {
            let begin = || Ok(Wait::new());
            let since = (generation, 0);
            let outcome =
                world
                    .readiness
                    .park_until_event(Read, since, Deadline::NEVER, begin, || ());
            assert_eq!(outcome, Outcome::Ready);
        });
        late.join().unwrap();
        world.readiness.report(generation, event(Read));
        reader.join().unwrap();
    });
}

/// A stream of items, of which a read takes up to two; its readers' loop is the one in
/// `FdCall::read`. The end is a bit of the word that counts the items.
struct Stream(Arc<World>);

const END: usize = 1 << 16;

impl Stream {
    fn new() -> Self {
        Self(World::new())
    }

    fn clone(&self) -> Self {
        Self(self.0.clone())
    }

    /// Returns `None` for `EAGAIN`.
    fn attempt(&self, since: (u32, u32)) -> Option<usize> {
        let word = &self.0.items[Read as usize];
        let mut seen = word.load(Relaxed);
        loop {
            let taken = (seen & !END).min(2);
            if taken == 0 {
                return (seen == END).then_some(0);
            }
            match word.compare_exchange(seen, seen - taken, Relaxed, Relaxed) {
                Ok(_) if taken == 2 => return Some(2),
                Ok(_) => {
                    self.0.readiness.note_emptied(since);
                    return Some(1);
                }
                Err(now) => seen = now,
            }
        }
    }

    /// Reads until it has `count` items, or all of them. Returns their number.
    fn read(&self, count: usize) -> usize {
        let readiness = &self.0.readiness;
        let mut got = 0;
        while got < count {
            match self.read_once(readiness) {
                0 => break,
                some => got += some,
            }
        }
        got
    }

    fn read_once(&self, readiness: &Readiness) -> usize {
        let mut since = (readiness.generation(), readiness.count(Read));
        if !readiness.is_emptied(since)
            && let Some(count) = self.attempt(since)
        {
            return count;
        }
        loop {
            let begin = || Ok(Wait::new());
            readiness.park_until_event(Read, since, Deadline::NEVER, begin, || ());
            since.1 = readiness.count(Read);
            if let Some(count) = self.attempt(since) {
                readiness.hand_off(Read);
                return count;
            }
        }
    }

    fn add(&self, items: usize) {
        self.0.items[Read as usize].fetch_add(items, Relaxed);
    }

    /// Reports an event of the stream as it is now.
    fn report(&self) {
        let word = self.0.items[Read as usize].load(Relaxed);
        let event = Event {
            lasting: word & END != 0,
            ..event(Read)
        };
        self.0.readiness.report(0, event);
    }
}

#[test]
fn a_reader_that_waits_after_a_short_read_gets_what_comes_later() {
    check(3, || {
        let stream = Stream::new();
        let poller = stream.clone();
        let poller = thread::spawn(move || {
            poller.0.arrive(Read, 1);
            poller.0.arrive(Read, 1);
        });
        assert_eq!(stream.read(2), 2);
        poller.join().unwrap();
    });
}

/// One event tells of an item and of the end.
#[test]
fn the_end_that_comes_with_a_short_read_is_found() {
    check(3, || {
        let stream = Stream::new();
        let poller = stream.clone();
        let poller = thread::spawn(move || {
            poller.add(1 + END);
            poller.report();
        });
        assert_eq!(stream.read(2), 1);
        poller.join().unwrap();
    });
}

#[test]
fn the_end_that_comes_after_an_event_is_found() {
    check(3, || {
        let stream = Stream::new();
        stream.add(1);
        let poller = stream.clone();
        let poller = thread::spawn(move || {
            poller.report();
            poller.add(END);
            poller.report();
        });
        assert_eq!(stream.read(2), 1);
        poller.join().unwrap();
    });
}

#[test]
fn two_readers_of_a_stream_get_all_of_it() {
    check(2, || {
        let stream = Stream::new();
        let (poller, other) = (stream.clone(), stream.clone());
        let poller = thread::spawn(move || {
            poller.0.arrive(Read, 3);
            poller.add(END);
            poller.report();
        });
        let other = thread::spawn(move || other.read(usize::MAX));
        let here = stream.read(usize::MAX);
        assert_eq!(here + other.join().unwrap(), 3);
        poller.join().unwrap();
    });
}
