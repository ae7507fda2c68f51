//! Tasks of async code that wait for a descriptor: no event and no close is lost between an attempt
//! and leaving the waker, and after a task has given up, no thread touches its place in the list.
//!
//! The task's loop is the one in `blocking/task.rs`. Its executor is a thread that parks until the
//! waker is woken.

use core::cell::Cell;
use core::task::Waker;
use loom::sync::atomic::{
    AtomicBool,
    Ordering::{Acquire, Release},
};
use loom::thread::{self, Thread};
use std::task::Wake;

use crate::blocking::wait::Outcome;
use crate::check;
use crate::fd_waiters::FdWaiter;
use crate::fd_waiters::Interest::{self, Read, Write};
use crate::readiness_model::{End, World};
use crate::surroundings::spawn;

/// The target of one task's wakers.
struct Alarm {
    thread: Thread,
    woken: AtomicBool,
}

impl Alarm {
    fn new() -> std::sync::Arc<Alarm> {
        std::sync::Arc::new(Alarm {
            thread: thread::current(),
            woken: AtomicBool::new(false),
        })
    }

    fn wait(&self) {
        while !self.woken.swap(false, Acquire) {
            thread::park();
        }
    }
}

impl Wake for Alarm {
    fn wake(self: std::sync::Arc<Self>) {
        // A wake happens before the poll after it. Not a store: loom may order a later swap before
        // that.
        self.woken.swap(true, Release);
        self.thread.unpark();
    }
}

/// One poll of an operation: `Err` is `Pending`.
fn poll(world: &World, waiter: &FdWaiter, interest: Interest, waker: Waker) -> Result<End, ()> {
    let readiness = &world.readiness;
    let mut waker = Some(waker);
    loop {
        let since = (readiness.generation(), readiness.count(interest));
        if let Some(end) = world.attempt(interest) {
            return Ok(end);
        }
        // SAFETY: the place stays until `stop_observing`.
        match unsafe { readiness.await_event(interest, since, waiter, &mut waker, || ()) } {
            Ok(()) => return Err(()),
            Err(Outcome::Closed) => return Ok(End::Closed),
            Err(_) => {}
        }
    }
}

/// Runs a task until its operation is done.
fn run(world: &World, interest: Interest) -> End {
    let place = Cell::new(None);
    let waiter = FdWaiter::task(&place, interest);
    let alarm = Alarm::new();
    let end = loop {
        match poll(world, &waiter, interest, alarm.clone().into()) {
            Ok(end) => break end,
            Err(()) => alarm.wait(),
        }
    };
    // SAFETY: it observes nothing else.
    unsafe { world.readiness.stop_observing(&waiter) };
    end
}

#[test]
fn an_event_between_an_attempt_and_leaving_the_waker_is_not_lost() {
    check(3, || {
        let world = World::new();
        let poller = spawn(&world, |world| {
            world.arrive(Read, 1);
            world.arrive(Read, 1);
        });
        assert_eq!(run(&world, Read), End::Done);
        assert_eq!(run(&world, Read), End::Done);
        poller.join().unwrap();
        assert!(!world.readiness.is_awaited());
    });
}

/// More tasks than the list of wakes has room for.
#[test]
fn an_event_wakes_all_tasks() {
    check(2, || {
        let world = World::new();
        let other = spawn(&world, |world| run(world, Read));
        let poller = spawn(&world, |world| world.arrive(Read, 2));
        assert_eq!(run(&world, Read), End::Done);
        assert_eq!(other.join().unwrap(), End::Done);
        poller.join().unwrap();
    });
}

#[test]
fn a_task_that_reads_and_one_that_writes_each_get_their_event() {
    check(2, || {
        let world = World::new();
        let writer = spawn(&world, |world| run(world, Write));
        let poller = spawn(&world, |world| {
            world.arrive(Write, 1);
            world.arrive(Read, 1);
        });
        assert_eq!(run(&world, Read), End::Done);
        assert_eq!(writer.join().unwrap(), End::Done);
        poller.join().unwrap();
    });
}

/// One edge stands for two items.
#[test]
fn a_task_and_a_thread_that_reads_are_both_served() {
    check(2, || {
        let world = World::new();
        let reader = spawn(&world, |world| world.read());
        let poller = spawn(&world, |world| world.arrive(Read, 2));
        assert_eq!(run(&world, Read), End::Done);
        assert_eq!(reader.join().unwrap(), End::Done);
        poller.join().unwrap();
    });
}

#[test]
fn a_close_wakes_a_task() {
    check(3, || {
        let world = World::new();
        let task = spawn(&world, |world| run(world, Read));
        world.close();
        assert_eq!(task.join().unwrap(), End::Closed);
    });
}

/// The place is gone when the event comes, or the event has taken the waker out before.
#[test]
fn a_task_that_gives_up_leaves_nothing_behind() {
    check(3, || {
        let world = World::new();
        let poller = spawn(&world, |world| world.arrive(Read, 1));
        let place = Cell::new(None);
        let waiter = Box::new(FdWaiter::task(&place, Read));
        let _ = poll(&world, &waiter, Read, Alarm::new().into());
        // SAFETY: it observes nothing else.
        unsafe { world.readiness.stop_observing(&waiter) };
        drop((waiter, place));
        poller.join().unwrap();
        assert!(!world.readiness.is_awaited());
    });
}

#[test]
fn the_last_waker_is_woken() {
    check(3, || {
        let world = World::new();
        let poller = spawn(&world, |world| world.arrive(Read, 1));
        let place = Cell::new(None);
        let waiter = FdWaiter::task(&place, Read);
        let (first, last) = (Alarm::new(), Alarm::new());
        let mut polled = poll(&world, &waiter, Read, first.into());
        while polled.is_err() {
            polled = poll(&world, &waiter, Read, last.clone().into());
            if polled.is_err() {
                last.wait();
            }
        }
        assert_eq!(polled, Ok(End::Done));
        // SAFETY: it observes nothing else.
        unsafe { world.readiness.stop_observing(&waiter) };
        poller.join().unwrap();
    });
}
