//! The reporter's alarm: it is not raised in vain, and a tick ends a rest.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicBool, Ordering::Relaxed};
use loom::thread;

use crate::alarm::Alarm;
use crate::time::Deadline;
use crate::{Word, check};

struct World {
    alarm: Alarm,
    /// Written by the monitor before it raises the alarm.
    finding: Word,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            alarm: Alarm::new(),
            finding: Word::new(),
        })
    }

    fn find(&self) {
        self.finding.write(7);
        self.alarm.raise();
    }
}

/// The reporter sleeps until it is told of the finding.
fn one_finding(sleep: impl Fn(&Alarm) -> bool + Copy + Send + Sync + 'static) {
    check(3, move || {
        let world = World::new();
        let monitor = {
            let world = world.clone();
            thread::spawn(move || world.find())
        };
        while !sleep(&world.alarm) {}
        assert_eq!(world.finding.read(), 7);
        monitor.join().unwrap();
        assert!(!world.alarm.nap(Deadline::after_nanos(0)), "raised once");
    });
}

#[test]
fn a_finding_ends_a_nap() {
    one_finding(|alarm| alarm.nap(Deadline::NEVER));
}

#[test]
fn a_finding_ends_a_rest() {
    one_finding(Alarm::rest);
}

#[test]
fn one_of_the_ticks_ends_a_rest() {
    check(3, || {
        let world = World::new();
        let rested = Arc::new(AtomicBool::new(false));
        let monitor = {
            let (world, rested) = (world.clone(), rested.clone());
            thread::spawn(move || {
                while !rested.load(Relaxed) {
                    world.alarm.stir();
                    thread::yield_now();
                }
            })
        };
        assert!(!world.alarm.rest());
        rested.store(true, Relaxed);
        monitor.join().unwrap();
    });
}
