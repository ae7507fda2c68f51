//! Reviews of descriptors: every mark is looked at, though all carriers sleep. The carriers' loop
//! and the attendance are the same as in `attendance_model.rs`.
//!
//! The review that has found all waiting threads ends a model. If it finds one too few, the
//! carriers sleep for ever, and loom says so.

use loom::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use loom::sync::{Arc, Mutex};

use crate::attendance::Attendance;
use crate::review::{self, Schedule};
use crate::surroundings::{self, Kicks, spawn};
use crate::time::Deadline;
use crate::{Word, check};

/// A time at which whatever may be due is due.
const LATER: u64 = u64::MAX - 1;

struct Entry {
    flags: AtomicU32,
    /// The number of threads that wait.
    waiters: Mutex<usize>,
}

struct World {
    entries: [Entry; 2],
    schedule: Schedule,
    attendance: Attendance,
    /// The number of descriptors that are reviewed in one step.
    length: usize,
    /// The carrier that takes a step changes it.
    step: Word,
    /// Threads still to be found by a review.
    left: AtomicUsize,
    kicks: Kicks,
}

impl World {
    fn new(waits: usize, length: usize) -> Arc<Self> {
        let entry = || Entry {
            flags: AtomicU32::new(0),
            waiters: Mutex::new(0),
        };
        Arc::new(Self {
            entries: [entry(), entry()],
            schedule: Schedule {
                due: AtomicU64::new(0),
                step: AtomicU64::new(0),
                first: AtomicU32::new(0),
            },
            attendance: Attendance::new(),
            length,
            step: Word::new(),
            left: AtomicUsize::new(waits),
            kicks: Kicks::new(),
        })
    }

    /// A thread begins to wait. If that makes a review due, calls `attend`; a thread of a
    /// carrier that sleeps afterwards need not.
    fn wait(&self, entry: usize, attend: impl FnOnce()) {
        let entry = &self.entries[entry];
        let mut waiters = entry.waiters.lock().unwrap();
        *waiters += 1;
        if !review::is_marked(&entry.flags) && self.schedule.mark(&entry.flags) {
            attend();
        }
    }

    /// A thread begins to wait on a platform thread without a processor.
    fn wait_elsewhere(&self, entry: usize) {
        self.wait(entry, || self.have_attended());
    }

    fn have_attended(&self) {
        if self.attendance.misses(|| self.first_due()) {
            self.kicks.kick();
        }
    }

    fn first_due(&self) -> Deadline {
        Deadline::from_nanos(self.schedule.due())
    }

    /// Takes a step if one is due.
    fn review(&self, now: u64) {
        if self.schedule.due() <= now {
            self.schedule.take_step(|first| self.review_some(first));
        }
    }

    fn review_some(&self, first: u32) -> Option<u32> {
        self.step.write(first);
        let mut most = self.length;
        for (number, entry) in self.entries.iter().enumerate().skip(first as usize) {
            if review::is_marked(&entry.flags) {
                if most == 0 {
                    return Some(number as u32);
                }
                most -= 1;
                review::unmark(&entry.flags);
                let found = core::mem::take(&mut *entry.waiters.lock().unwrap());
                if found > 0 && self.left.fetch_sub(found, Relaxed) == found {
                    self.kicks.end();
                }
            }
        }
        None
    }

    /// Sleeps until all threads have been found.
    fn sleep(&self) {
        let (attendance, kicks) = (&self.attendance, &self.kicks);
        surroundings::sleep(
            attendance,
            kicks,
            &self.left,
            || self.first_due(),
            |now| self.review(now),
        );
    }
}

#[test]
fn a_mark_that_nobody_attends_to_wakes_a_sleeper() {
    check(3, || {
        let world = World::new(1, 2);
        let waiter = spawn(&world, |world| world.wait_elsewhere(0));
        world.sleep();
        waiter.join().unwrap();
    });
}

#[test]
fn a_mark_that_is_set_during_a_review_is_not_lost() {
    check(3, || {
        let world = World::new(2, 2);
        world.wait(1, || ());
        let waiter = spawn(&world, |world| world.wait_elsewhere(0));
        world.sleep();
        waiter.join().unwrap();
    });
}

/// Two threads wait for one descriptor; the second may find the mark set.
#[test]
fn a_thread_that_leaves_the_mark_to_another_is_not_forgotten() {
    check(3, || {
        let world = World::new(2, 2);
        world.wait(0, || ());
        let waiter = spawn(&world, |world| world.wait_elsewhere(0));
        world.sleep();
        waiter.join().unwrap();
    });
}

#[test]
fn a_carrier_that_leaves_its_review_to_another_is_not_let_down() {
    check(2, || {
        let world = World::new(2, 2);
        let other = spawn(&world, |world| {
            world.wait(1, || ());
            world.sleep();
        });
        world.wait(0, || ());
        world.sleep();
        other.join().unwrap();
    });
}

/// The second step takes the last of the marks, and the next review begins with the first number.
#[test]
fn a_review_begins_anew_after_the_last_step() {
    check(1, || {
        let world = World::new(3, 1);
        world.wait(0, || ());
        world.wait(1, || ());
        world.review(LATER);
        world.review(LATER);
        assert_eq!(world.left.load(Relaxed), 1);
        world.wait(0, || ());
        world.sleep();
    });
}

/// As a spare carrier does: it has no threads to run, and will not attend.
#[test]
fn a_carrier_that_rests_after_a_step_leaves_the_next_to_another() {
    check(2, || {
        let world = World::new(2, 1);
        world.wait(0, || ());
        world.wait(1, || ());
        let spare = spawn(&world, |world| {
            world.review(LATER);
            world.have_attended();
        });
        world.sleep();
        spare.join().unwrap();
    });
}
