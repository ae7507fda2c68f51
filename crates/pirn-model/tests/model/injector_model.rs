//! The injector: threads that handlers post, and the share of those that come from outside.
//!
//! Weakened once each: without the Release in `post`, or the Acquire in `take_all_posted`, loom
//! finds accesses to the thread that are not ordered. The flag of those from outside and the
//! length are Relaxed: they may be stale, and the lock orders everything else.

use core::ptr::NonNull;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::check;
use crate::injector::Injector;
use crate::vthread::{Core, Ready};

struct World {
    injector: Injector,
    cores: [Core; 2],
    /// The number of threads that have run.
    run: AtomicUsize,
}

impl World {
    fn new() -> Arc<World> {
        Arc::new(World {
            injector: Injector::new(),
            cores: [Core::new(), Core::new()],
            run: AtomicUsize::new(0),
        })
    }

    /// Makes a thread runnable.
    fn ready(&self, number: usize) -> Ready {
        self.cores[number].word.write(7);
        // SAFETY: the world outlives its threads.
        unsafe { Ready::new(NonNull::from(&self.cores[number])) }
    }

    /// Runs a thread: for the first time, after all that was done before it became runnable.
    fn run(&self, thread: &Ready) {
        assert_eq!(thread.core().word.read(), 7);
        thread.core().word.write(8);
        self.run.fetch_add(1, Relaxed);
    }

    /// Returns whether a thread has come from outside and is still there.
    fn has_from_outside(&self) -> bool {
        self.injector.has_from_outside()
    }
}

fn start(world: &Arc<World>, f: impl FnOnce(&World) + Send + 'static) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || f(&world))
}

fn take_posted(world: &World) {
    world.injector.take_posted(|thread| world.run(&thread));
}

#[test]
fn each_posted_thread_runs_once() {
    check(3, || {
        let world = World::new();
        let handlers = [0, 1].map(|number| {
            let post = move |world: &World| world.injector.post(world.ready(number));
            start(&world, post)
        });
        // A poster kicks; here each look is one.
        take_posted(&world);
        handlers
            .into_iter()
            .for_each(|handler| handler.join().unwrap());
        take_posted(&world);
        assert_eq!(world.run.load(Relaxed), 2);
    });
}

#[test]
fn two_carriers_share_what_was_posted() {
    check(3, || {
        let world = World::new();
        world.injector.post(world.ready(0));
        let carrier = start(&world, take_posted);
        world.injector.post(world.ready(1));
        take_posted(&world);
        carrier.join().unwrap();
        take_posted(&world);
        assert_eq!(world.run.load(Relaxed), 2);
    });
}

#[test]
fn posted_threads_run_in_the_order_of_their_posts() {
    check(3, || {
        let world = World::new();
        let handler = start(&world, |world| {
            world.injector.post(world.ready(0));
            world.injector.post(world.ready(1));
        });
        let first = &raw const world.cores[0];
        let run = |thread: Ready| {
            let is_first = core::ptr::eq(thread.core(), first);
            assert_eq!(is_first, world.run.load(Relaxed) == 0);
            world.run(&thread);
        };
        world.injector.take_posted(run);
        handler.join().unwrap();
        world.injector.take_posted(run);
        assert_eq!(world.run.load(Relaxed), 2);
    });
}

/// Two threads come from outside; a carrier takes what is urgent twice, and the rest in its turn.
#[test]
fn a_thread_from_outside_is_neither_lost_nor_run_twice() {
    check(3, || {
        let world = World::new();
        let outsiders = [0, 1].map(|number| {
            let push = move |world: &World| world.injector.push_from_outside(world.ready(number));
            start(&world, push)
        });
        for _ in 0..2 {
            if let Some(thread) = world.injector.take_from_outside() {
                world.run(&thread);
            }
        }
        outsiders
            .into_iter()
            .for_each(|outsider| outsider.join().unwrap());
        while let Some(thread) = world.injector.pop(1, |_| ()) {
            world.run(&thread);
        }
        assert_eq!(world.run.load(Relaxed), 2);
        assert!(!world.has_from_outside());
    });
}

#[test]
fn one_that_came_after_the_last_look_has_its_share() {
    check(3, || {
        let world = World::new();
        let outsider = start(&world, |world| {
            world.injector.push_from_outside(world.ready(0));
        });
        let taken = world.injector.take_from_outside();
        outsider.join().unwrap();
        // It was taken, or no carrier has seen it, and one will.
        assert_eq!(world.has_from_outside(), taken.is_none());
        let taken = taken.or_else(|| world.injector.take_from_outside());
        world.run(&taken.unwrap());
    });
}
