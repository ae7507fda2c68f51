//! Idle and searching: no thread is lost when carriers go to sleep while others make threads
//! runnable. The carriers' loop is the one in `carriers/mod.rs`.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use crate::check;
use crate::idle::Idle;
use crate::surroundings::{Kicks, spawn};

/// Two processors, by number.
static PROCESSORS: [usize; 2] = [0, 1];

struct World {
    idle: Idle<usize>,
    /// The producers' queues, of one thread each. Filled by a plain store, as run queues are.
    queues: [AtomicUsize; 2],
    /// Threads still to be run.
    left: AtomicUsize,
    kicks: Kicks,
}

impl World {
    fn new(threads: usize) -> Arc<Self> {
        Arc::new(Self {
            idle: Idle::new(PROCESSORS.len()),
            queues: [AtomicUsize::new(0), AtomicUsize::new(0)],
            left: AtomicUsize::new(threads),
            kicks: Kicks::new(),
        })
    }

    fn produce(&self, queue: usize) {
        self.queues[queue].store(1, Relaxed);
        self.idle.notify(|| self.kicks.kick());
    }

    fn in_queues(&self) -> bool {
        self.queues.iter().any(|queue| queue.load(Relaxed) > 0)
    }

    /// Takes a thread from one of the queues, if it sees any.
    fn look(&self) -> bool {
        let mut queues = self.queues.iter();
        queues.any(|queue| queue.load(Relaxed) > 0 && queue.swap(0, Relaxed) > 0)
    }

    /// Runs a thread. Returns whether more are left.
    fn run_one(&self) -> bool {
        let last = self.left.fetch_sub(1, Relaxed) == 1;
        if last {
            self.kicks.end();
        }
        !last
    }

    fn carry(&self, mut held: Option<&'static usize>) {
        let mut searching = false;
        loop {
            if let Some(processor) = held {
                let mut found = self.look();
                if !found {
                    searching = searching
                        || self.idle.take_request()
                        || self.idle.start_searching(PROCESSORS.len());
                    found = searching && self.look();
                }
                if core::mem::take(&mut searching) {
                    self.idle
                        .stop_searching(found, || self.in_queues(), || self.kicks.kick());
                }
                if found {
                    if self.run_one() {
                        continue;
                    }
                    return;
                }
                if self.idle.release(processor, || self.in_queues()) {
                    held = self.idle.acquire();
                    continue;
                }
            }
            if !self.kicks.wait() {
                return;
            }
            held = self.idle.acquire();
            searching = held.is_some() && self.idle.take_request();
        }
    }
}

#[test]
fn a_carrier_that_goes_to_sleep_finds_the_thread_or_is_woken() {
    check(3, || {
        let world = World::new(1);
        let producer = spawn(&world, |world| world.produce(0));
        world.carry(Some(&PROCESSORS[0]));
        producer.join().unwrap();
    });
}

#[test]
fn the_last_searcher_finds_what_others_left_to_it() {
    check(2, || {
        let world = World::new(2);
        let producers = [0, 1].map(|queue| spawn(&world, move |world| world.produce(queue)));
        world.carry(Some(&PROCESSORS[0]));
        for producer in producers {
            producer.join().unwrap();
        }
    });
}

/// The searcher's thread keeps it for ever: the sleeper must be woken for the other thread.
#[test]
fn a_searcher_that_found_something_wakes_the_next_if_there_is_more() {
    check(2, || {
        let world = World::new(2);
        world.idle.release(&PROCESSORS[1], || false);
        assert!(world.idle.start_searching(PROCESSORS.len()));
        let sleeper = spawn(&world, |world| world.carry(None));
        world.produce(0);
        let producer = spawn(&world, |world| world.produce(1));
        assert!(world.look());
        world
            .idle
            .stop_searching(true, || world.in_queues(), || world.kicks.kick());
        world.run_one();
        sleeper.join().unwrap();
        producer.join().unwrap();
    });
}

#[test]
fn of_two_carriers_that_go_to_sleep_one_finds_the_thread_or_is_woken() {
    check(1, || {
        let world = World::new(1);
        let other = spawn(&world, |world| world.carry(Some(&PROCESSORS[1])));
        let producer = spawn(&world, |world| world.produce(0));
        world.carry(Some(&PROCESSORS[0]));
        other.join().unwrap();
        producer.join().unwrap();
    });
}

/// A spare carrier keeps its processor when it rests: it looks once more, as `stand_in` does.
#[test]
fn a_search_in_vain_of_a_spare_carrier_leaves_no_thread_behind() {
    check(3, || {
        let world = World::new(1);
        world.idle.release(&PROCESSORS[1], || false);
        let sleeper = spawn(&world, |world| world.carry(None));
        let producer = spawn(&world, |world| world.produce(0));
        assert!(world.idle.start_searching(2 * PROCESSORS.len()));
        let found = world.look();
        world
            .idle
            .stop_searching(found, || world.in_queues(), || world.kicks.kick());
        if found {
            world.run_one();
        } else if world.idle.work_in_sight(|| world.in_queues()) {
            world.idle.notify(|| world.kicks.kick());
        }
        sleeper.join().unwrap();
        producer.join().unwrap();
    });
}

/// One processor for two carriers: a kicked carrier may find that the other one has it.
#[test]
fn a_request_that_finds_no_processor_is_not_lost() {
    check(2, || {
        let world = World::new(2);
        let sleeper = spawn(&world, |world| world.carry(None));
        let producer = spawn(&world, |world| {
            world.produce(0);
            world.produce(1);
        });
        world.carry(Some(&PROCESSORS[0]));
        sleeper.join().unwrap();
        producer.join().unwrap();
    });
}

/// A carrier that is awake looks for events and takes the kick; then its thread keeps it for ever.
#[test]
fn a_kick_that_an_awake_carrier_takes_does_not_lose_the_thread() {
    check(3, || {
        let world = World::new(1);
        world.idle.release(&PROCESSORS[1], || false);
        let sleeper = spawn(&world, |world| world.carry(None));
        let producer = spawn(&world, |world| world.produce(0));
        if world.kicks.take() {
            world
                .idle
                .decline(|| world.in_queues(), || world.kicks.kick());
        }
        sleeper.join().unwrap();
        producer.join().unwrap();
    });
}
