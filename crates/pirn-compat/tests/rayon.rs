//! `rayon`: virtual threads that wait for a pool of platform threads, and a pool whose workers are
//! virtual threads themselves.

use std::sync::Mutex;

use pirn::thread::{self, JoinHandle};
use pirn_compat::{self as common, CARRIERS, Latch, THREADS, on_threads, watched};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

/// The pool starts on no job before all the threads have handed theirs in and wait.
#[watched]
fn all_threads_wait_for_one_pool() {
    let pool = ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    let installing = Latch::new(THREADS);
    let answers = on_threads(THREADS, |index| {
        installing.arrive();
        pool.install(|| {
            installing.wait();
            index
        })
    });
    assert!(answers.into_iter().eq(0..THREADS));
}

/// A worker that waits for a part of its job runs other jobs on the same stack meanwhile, as deep
/// as chance has it: `rayon`'s own threads have the 2 MiB of `std`'s too.
const WORKER_STACK: usize = 2 << 20;

/// Runs `body` with a pool of `THREADS` workers, each on a virtual thread.
fn with_virtual_workers(body: impl FnOnce(&ThreadPool)) {
    let workers = Mutex::new(Vec::<JoinHandle<()>>::new());
    let pool = ThreadPoolBuilder::new()
        .num_threads(THREADS)
        .spawn_handler(|worker| {
            let builder = thread::Builder::new().stack_size(WORKER_STACK);
            let handle = builder.spawn(|| worker.run())?;
            workers.lock().unwrap().push(handle);
            Ok(())
        })
        .build()
        .unwrap();
    body(&pool);
    drop(pool); // the workers end
    let workers = workers.into_inner().unwrap();
    assert_eq!(workers.len(), THREADS);
    workers
        .into_iter()
        .for_each(|worker| worker.join().unwrap());
}

/// Every worker waits, inside its job, for all the others.
#[watched]
fn all_workers_meet_in_a_broadcast() {
    with_virtual_workers(|pool| {
        let met = Latch::new(THREADS);
        let indices = pool.broadcast(|context| {
            met.arrive_and_wait();
            context.index()
        });
        assert!(indices.into_iter().eq(0..THREADS));
    });
}

#[watched]
fn parallel_iterators_on_virtual_workers() {
    const LENGTH: usize = 100_000;
    with_virtual_workers(|pool| {
        // A permutation: the factor has no divisor in common with the length.
        let mut numbers: Vec<_> = (0..LENGTH).map(|i| i * 7919 % LENGTH).collect();
        pool.install(|| numbers.par_sort_unstable());
        assert!(numbers.iter().copied().eq(0..LENGTH));
        let sum: usize = pool.install(|| numbers.par_iter().sum());
        assert_eq!(sum, LENGTH * (LENGTH - 1) / 2);
    });
}

/// Jobs that block half the workers leave the other half to release them.
#[watched]
fn spawned_jobs_release_blocked_ones() {
    const { assert!(THREADS / 2 > CARRIERS) };
    with_virtual_workers(|pool| {
        let (blocked, released) = (Latch::new(THREADS / 2), Latch::new(1));
        pool.scope(|scope| {
            for _ in 0..THREADS / 2 {
                scope.spawn(|_| {
                    blocked.arrive();
                    released.wait();
                });
            }
            scope.spawn(|_| {
                blocked.wait();
                released.arrive();
            });
        });
    });
}
