//! Jobs for pool threads: each is taken, whether threads are idle, busy or about to end.

use core::ptr::NonNull;

use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::jobs::{Job, Jobs, Worker};
use crate::surroundings::spawn;
use crate::{Word, check};

#[repr(C)]
struct Item {
    job: Job,
    /// Written before the job is submitted, and by the thread that takes it.
    state: Word,
}

struct World(Jobs);

// SAFETY: items are passed on by the queue.
unsafe impl Sync for World {}
// SAFETY: items are passed on by the queue.
unsafe impl Send for World {}

const FOR_LONG: u64 = 1;
const NOT_AT_ALL: u64 = 0;

impl World {
    /// A pool of at most `limit` threads, all of which take jobs at once.
    fn new(limit: usize) -> Arc<Self> {
        Self::with_lookout(limit, limit)
    }

    /// A pool of which only `eager` threads take jobs at once.
    fn with_lookout(limit: usize, eager: usize) -> Arc<Self> {
        Arc::new(Self(Jobs::new(limit, eager)))
    }

    /// Submits a job. Returns whether another thread is wanted.
    fn submit(&self) -> bool {
        let item = Box::new(Item {
            job: Job::new(|_| unreachable!("the models only take jobs")),
            state: Word::new(),
        });
        item.state.write(1);
        // SAFETY: it stays until `take` frees it.
        unsafe { self.0.submit(NonNull::from(Box::leak(item)).cast()) }
    }

    /// Takes a job as a pool thread does. Returns whether there was one.
    fn take(&self, worker: &mut Worker, keep_alive: u64) -> bool {
        match self.take_and_hire(worker, keep_alive) {
            Some(hire) => {
                assert!(!hire, "no model that calls this has so many jobs");
                true
            }
            None => false,
        }
    }

    /// Takes a job. Returns whether another thread is wanted, or `None` without a job. All threads
    /// count as blocked, always.
    fn take_and_hire(&self, worker: &mut Worker, keep_alive: u64) -> Option<bool> {
        let taken = self.0.next(worker, keep_alive, |_| true)?;
        // SAFETY: from `submit`, and off the queue.
        let item = unsafe { Box::from_raw(taken.job.as_ptr().cast::<Item>()) };
        assert_eq!(item.state.read(), 1);
        item.state.write(2);
        Some(taken.hire)
    }
}

#[test]
fn a_thread_that_goes_to_sleep_takes_the_job_or_is_woken() {
    check(3, || {
        let world = World::new(1);
        assert!(world.submit(), "there is no thread yet");
        let worker = spawn(&world, |world| {
            let mut worker = Worker::new(1);
            assert!(world.take(&mut worker, FOR_LONG) && world.take(&mut worker, FOR_LONG));
        });
        assert!(!world.submit(), "there may be one thread only");
        worker.join().unwrap();
    });
}

#[test]
fn two_threads_and_two_jobs() {
    check(2, || {
        let world = World::new(2);
        let workers = [1, 2].map(|id| {
            assert!(world.submit(), "the first thread will be busy");
            spawn(&world, move |world| {
                assert!(world.take(&mut Worker::new(id), FOR_LONG));
            })
        });
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
        let worker = spawn(&world, |world| {
            let mut worker = Worker::new(1);
            while world.take(&mut worker, NOT_AT_ALL) {}
        });
        if world.submit() {
            // The only thread has ended: this one replaces it.
            assert!(world.take(&mut Worker::new(2), FOR_LONG));
        }
        worker.join().unwrap();
    });
}

/// Where jobs wait for each other.
struct Meeting(Mutex<u32>, Condvar);

impl Meeting {
    /// Waits until `count` jobs have come here.
    fn meet(&self, count: u32) {
        let mut met = self.0.lock().unwrap();
        *met += 1;
        self.1.notify_all();
        while *met < count {
            met = self.1.wait(met).unwrap();
        }
    }
}

/// Starts a pool thread that runs one job, which ends when `count` jobs are being run.
fn start_blocked(world: &Arc<World>, meeting: &Arc<Meeting>, id: u32, count: u32) {
    let meeting = meeting.clone();
    let shared = world.clone();
    let _ = spawn(world, move |world| {
        let hire = world.take_and_hire(&mut Worker::new(id), FOR_LONG).unwrap();
        if hire {
            start_blocked(&shared, &meeting, id + 1, count);
        }
        meeting.meet(count);
    });
}

#[test]
fn a_job_behind_one_that_is_blocked_gets_a_thread() {
    check(2, || {
        let world = World::with_lookout(2, 1);
        let meeting = Arc::new(Meeting(Mutex::new(0), Condvar::new()));
        for id in [1, 11] {
            if world.submit() {
                start_blocked(&world, &meeting, id, 2);
            }
        }
    });
}

// A thread that starts another one may stand still at any time, before that has begun or after.
#[test]
fn a_job_gets_a_thread_whoever_starts_it() {
    check(2, || {
        let world = World::with_lookout(2, 1);
        let meeting = Arc::new(Meeting(Mutex::new(0), Condvar::new()));
        let submit = |world: &Arc<World>, meeting: &Arc<Meeting>, id| {
            if world.submit() {
                start_blocked(world, meeting, id, 2);
            }
        };
        let other = thread::spawn({
            let (world, meeting) = (world.clone(), meeting.clone());
            move || submit(&world, &meeting, 11)
        });
        submit(&world, &meeting, 1);
        other.join().unwrap();
    });
}

/// Starts a pool thread that runs jobs until there is nothing to do for it.
fn start_hasty(world: &Arc<World>, done: &Arc<AtomicUsize>, id: u32) {
    let (shared, done) = (world.clone(), done.clone());
    let _ = spawn(world, move |world| {
        let mut worker = Worker::new(id);
        while let Some(hire) = world.take_and_hire(&mut worker, NOT_AT_ALL) {
            if hire {
                start_hasty(&shared, &done, id + 1);
            }
            done.fetch_add(1, Relaxed);
        }
    });
}

#[test]
fn jobs_are_taken_while_lookouts_come_and_go() {
    check(2, || {
        let world = World::with_lookout(2, 1);
        let done = Arc::new(AtomicUsize::new(0));
        for id in [1, 11] {
            if world.submit() {
                start_hasty(&world, &done, id);
            }
        }
        while done.load(Relaxed) < 2 {
            thread::yield_now();
        }
    });
}

#[test]
fn many_jobs_at_once_want_the_eager_threads_and_a_lookout() {
    check(0, || {
        let world = World::with_lookout(100, 2);
        let wanted = (0..10).filter(|_| world.submit()).count();
        assert_eq!(wanted, 3);
    });
}
