//! Jobs for pool threads: each is taken, whether threads are idle, busy or about to end.

use core::ptr::{self, NonNull};

use loom::sync::Arc;
use loom::thread;

use crate::jobs::{Job, Jobs};
use crate::{Word, check};

struct Item {
    next: *mut Item,
    /// Written before the job is submitted, and by the thread that takes it.
    state: Word,
}

// SAFETY: always the same field.
unsafe impl Job for Item {
    unsafe fn link(job: NonNull<Self>) -> *mut *mut Self {
        // SAFETY: the caller's contract.
        unsafe { &raw mut (*job.as_ptr()).next }
    }
}

struct World(Jobs<Item>);

// SAFETY: items are passed on by the queue.
unsafe impl Sync for World {}
// SAFETY: as above.
unsafe impl Send for World {}

const FOR_LONG: u64 = 1;
const NOT_AT_ALL: u64 = 0;

impl World {
    fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self(Jobs::new(limit)))
    }

    /// Submits a job. Returns whether another thread is wanted.
    fn submit(&self) -> bool {
        let item = Box::new(Item {
            next: ptr::null_mut(),
            state: Word::new(),
        });
        item.state.write(1);
        // SAFETY: it stays until `take` frees it.
        unsafe { self.0.submit(NonNull::from(Box::leak(item))) }
    }

    /// Takes a job as a pool thread does. Returns whether there was one.
    fn take(&self, keep_alive: u64) -> bool {
        let Some(job) = self.0.next(keep_alive) else {
            return false;
        };
        // SAFETY: from `submit`, and off the queue.
        let item = unsafe { Box::from_raw(job.as_ptr()) };
        assert_eq!(item.state.read(), 1);
        item.state.write(2);
        true
    }
}

fn spawn(world: &Arc<World>, f: impl FnOnce(&World) + 'static) -> thread::JoinHandle<()> {
    let world = world.clone();
    thread::spawn(move || f(&world))
}

#[test]
fn a_thread_that_goes_to_sleep_takes_the_job_or_is_woken() {
    check(3, || {
        let world = World::new(1);
        assert!(world.submit(), "there is no thread yet");
        let worker = spawn(&world, |world| {
            assert!(world.take(FOR_LONG) && world.take(FOR_LONG));
        });
        world.0.started();
        assert!(!world.submit(), "there may be one thread only");
        worker.join().unwrap();
    });
}

#[test]
fn two_threads_and_two_jobs() {
    check(2, || {
        let world = World::new(2);
        assert!(world.submit());
        let workers = [0, 1].map(|_| {
            spawn(&world, |world| {
                assert!(world.take(FOR_LONG));
            })
        });
        world.0.started();
        if world.submit() {
            world.0.started();
        }
        for worker in workers {
            worker.join().unwrap();
        }
    });
}

#[test]
fn a_thread_that_ends_takes_the_job_or_another_is_wanted() {
    check(3, || {
        let world = World::new(1);
        assert!(world.submit());
        world.0.started();
        let worker = spawn(&world, |world| while world.take(NOT_AT_ALL) {});
        if world.submit() {
            // The only thread has ended: this one replaces it.
            world.0.started();
            assert!(world.take(FOR_LONG));
        }
        worker.join().unwrap();
    });
}
