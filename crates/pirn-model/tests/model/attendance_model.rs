//! Attendance: no timer is forgotten while all carriers sleep.

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::{Arc, Mutex};

use crate::attendance::{Attendance, First};
use crate::check;
use crate::surroundings::{self, Kicks, spawn};
use crate::time::Deadline;

/// A heap of one timer.
struct Shard {
    /// When it is due.
    timer: Mutex<Deadline>,
    first: First,
}

struct World {
    shards: [Shard; 2],
    attendance: Attendance,
    /// Timers still to be fired.
    left: AtomicUsize,
    kicks: Kicks,
}

impl World {
    fn new(timers: usize) -> Arc<Self> {
        let shard = || Shard {
            timer: Mutex::new(Deadline::NEVER),
            first: First::new(),
        };
        Arc::new(Self {
            shards: [shard(), shard()],
            attendance: Attendance::new(),
            left: AtomicUsize::new(timers),
            kicks: Kicks::new(),
        })
    }

    /// A carrier arms a timer in its own shard.
    fn arm_own(&self, shard: usize, deadline: u64) {
        let shard = &self.shards[shard];
        let mut timer = shard.timer.lock().unwrap();
        *timer = Deadline::from_nanos(deadline);
        shard.first.publish(*timer);
    }

    /// A thread without a processor arms a timer.
    fn arm(&self, shard: usize, deadline: u64) {
        self.arm_own(shard, deadline);
        if self.attendance.misses(|| Deadline::from_nanos(deadline)) {
            self.kicks.kick();
        }
    }

    /// Fires the timers that are due.
    fn fire(&self, now: u64) {
        for shard in &self.shards {
            let now = Deadline::from_nanos(now);
            if shard.first.get() > now {
                continue;
            }
            let mut timer = shard.timer.lock().unwrap();
            if *timer <= now {
                *timer = Deadline::NEVER;
                shard.first.publish(*timer);
                if self.left.fetch_sub(1, Relaxed) == 1 {
                    self.kicks.end();
                }
            }
        }
    }

    /// Sleeps until all timers have been fired.
    fn sleep(&self) {
        let first = || self.shards.iter().map(|s| s.first.get()).min().unwrap();
        let (attendance, kicks) = (&self.attendance, &self.kicks);
        surroundings::sleep(attendance, kicks, &self.left, first, |now| self.fire(now));
    }
}

#[test]
fn a_timer_that_nobody_attends_to_wakes_a_sleeper() {
    check(3, || {
        let world = World::new(1);
        let armer = spawn(&world, |world| world.arm(0, 5));
        world.sleep();
        armer.join().unwrap();
    });
}

#[test]
fn an_earlier_timer_is_not_forgotten() {
    check(2, || {
        let world = World::new(2);
        world.arm_own(0, 10);
        let armer = spawn(&world, |world| world.arm(1, 5));
        world.sleep();
        armer.join().unwrap();
    });
}

#[test]
fn a_later_timer_is_seen_by_the_carrier_that_attended() {
    check(2, || {
        let world = World::new(2);
        world.arm_own(0, 10);
        let armer = spawn(&world, |world| world.arm(1, 20));
        world.sleep();
        armer.join().unwrap();
    });
}

#[test]
fn a_carrier_that_leaves_its_timer_to_another_is_not_let_down() {
    check(2, || {
        let world = World::new(2);
        world.arm_own(0, 10);
        let other = spawn(&world, |world| {
            world.arm_own(1, 20);
            world.sleep();
        });
        world.sleep();
        other.join().unwrap();
    });
}
