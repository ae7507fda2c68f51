//! Spare processors: the monitor adds one and lets it go, its carrier works and rests.

use loom::sync::Arc;
use loom::thread;

use crate::spare::{InUse, Spare};
use crate::{Word, check};

struct World {
    spare: Spare,
    in_use: InUse,
    /// Written by the monitor before it adds the processor, read by the carrier that works.
    given: Word,
    /// Written by the carrier before it rests, read by the monitor that adds it again.
    left: Word,
}

impl World {
    fn new() -> Arc<Self> {
        let world = Arc::new(Self {
            spare: Spare::new(),
            in_use: InUse::new(),
            given: Word::new(),
            left: Word::new(),
        });
        assert!(world.spare.add(&world.in_use, || true), "it was NEW");
        world
    }

    /// The carrier rests once, and works again.
    fn rest(&self) {
        self.left.write(1);
        self.spare.rest(&self.in_use);
        assert_eq!(self.given.read(), 1);
    }

    /// The monitor adds the processor as soon as it rests.
    fn add(&self) {
        self.given.write(1);
        while !self
            .spare
            .add(&self.in_use, || unreachable!("it has a carrier"))
        {
            thread::yield_now();
        }
        assert_eq!(self.left.read(), 1);
        assert_eq!(self.in_use.count(), 1);
    }
}

fn carrier(world: &Arc<World>) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || world.rest())
}

#[test]
fn a_processor_that_rests_is_added_again() {
    check(3, || {
        let world = World::new();
        let carrier = carrier(&world);
        world.add();
        carrier.join().unwrap();
        assert!(world.spare.is_active());
    });
}

#[test]
fn a_dismissal_may_come_when_it_rests_already() {
    check(3, || {
        let world = World::new();
        let carrier = carrier(&world);
        world.spare.dismiss();
        world.add();
        carrier.join().unwrap();
        assert!(
            world.spare.is_active(),
            "the dismissal was for the work before"
        );
    });
}

#[test]
fn without_a_carrier_it_is_not_in_use() {
    check(1, || {
        let (spare, in_use) = (Spare::new(), InUse::new());
        assert!(!spare.add(&in_use, || false));
        assert!(!spare.is_in_use());
        assert_eq!(in_use.count(), 0);
        assert!(spare.add(&in_use, || true));
        assert!(!spare.add(&in_use, || true), "it works already");
        assert_eq!(in_use.count(), 1);
    });
}
