//! Semaphores: bounds, order, and waits that end without a permit.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::{on_virtual, until_it_waits, watched};
use pirn::thread::{self, Interrupted, Semaphore};

/// Longer than any test.
const LONG: Duration = Duration::from_secs(24 * 3600);

/// Runs a test on a platform thread and on a virtual one.
fn on_both(test: fn()) {
    test();
    on_virtual(test);
}

#[watched]
fn no_more_threads_have_permits_than_there_are() {
    on_both(|| {
        let semaphore = Semaphore::new(3);
        let (inside, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        let work = || {
            for _ in 0..20 {
                let _permit = semaphore.acquire();
                assert!(inside.fetch_add(1, SeqCst) < 3);
                thread::yield_now();
                inside.fetch_sub(1, SeqCst);
                done.fetch_add(1, SeqCst);
            }
        };
        std::thread::scope(|platform| {
            platform.spawn(work);
            platform.spawn(work);
            thread::scope(|s| {
                for _ in 0..20 {
                    s.spawn(work);
                }
            });
        });
        assert_eq!(done.into_inner(), 22 * 20);
        assert_eq!(semaphore.available_permits(), 3);
    });
}

#[watched]
fn permits_are_given_in_order_of_arrival() {
    on_both(|| {
        let (semaphore, order) = (Semaphore::new(0), Mutex::new(Vec::new()));
        thread::scope(|s| {
            for i in 0..20 {
                let (semaphore, order) = (&semaphore, &order);
                let waiter = s.spawn(move || {
                    let permit = semaphore.acquire();
                    order.lock().unwrap().push(i);
                    permit.forget();
                });
                until_it_waits(waiter.thread());
            }
            for given in 1..=20 {
                semaphore.add_permits(1);
                assert!(semaphore.try_acquire().is_none(), "it has overtaken");
                while order.lock().unwrap().len() < given {
                    thread::yield_now();
                }
            }
        });
        assert!(order.into_inner().unwrap().into_iter().eq(0..20));
    });
}

#[watched]
fn many_permits_wake_many_threads() {
    on_both(|| {
        let semaphore = Semaphore::new(0);
        thread::scope(|s| {
            for _ in 0..100 {
                let waiter = s.spawn(|| semaphore.acquire().forget());
                until_it_waits(waiter.thread());
            }
            semaphore.add_permits(101);
        });
        assert_eq!(semaphore.available_permits(), 1);
    });
}

#[watched]
fn a_wait_that_times_out_takes_no_permit() {
    on_both(|| {
        let semaphore = Semaphore::new(1);
        let permit = semaphore.acquire_timeout(Duration::ZERO).unwrap();
        let start = Instant::now();
        let soon = Duration::from_millis(2);
        thread::current().interrupt(); // Does not end this wait.
        assert!(semaphore.acquire_timeout(soon).is_none());
        assert!(start.elapsed() >= soon);
        assert!(thread::take_interrupt());
        drop(permit);
        assert_eq!(semaphore.available_permits(), 1);
        assert!(semaphore.acquire_timeout(LONG).is_some());
    });
}

#[watched]
fn an_interrupt_ends_the_wait_of_one_thread_only() {
    on_both(|| {
        let semaphore = Semaphore::new(0);
        thread::scope(|s| {
            let first = s.spawn(|| semaphore.acquire_interruptible().map(drop));
            until_it_waits(first.thread());
            let second = s.spawn(|| semaphore.acquire_interruptible().map(drop));
            until_it_waits(second.thread());
            first.thread().interrupt();
            assert_eq!(first.join().unwrap(), Err(Interrupted));
            semaphore.add_permits(1);
            assert_eq!(second.join().unwrap(), Ok(()));
        });
        thread::current().interrupt();
        let free = semaphore.acquire_interruptible();
        assert!(free.is_ok(), "a free permit counts for more");
        assert!(semaphore.acquire_interruptible().is_err());
        assert!(thread::take_interrupt());
    });
}

/// Each permit goes to one thread, whatever ends the waits of the others at the same moment.
#[watched]
fn no_permit_is_lost_when_waits_end_early() {
    on_both(|| {
        let semaphore = Semaphore::new(0);
        for round in 0..200 {
            thread::scope(|s| {
                let waiters = [
                    s.spawn(|| {
                        semaphore
                            .acquire_timeout(Duration::from_micros(100))
                            .is_some()
                    }),
                    s.spawn(|| semaphore.acquire_interruptible().is_ok()),
                ];
                thread::sleep(Duration::from_micros(round));
                s.spawn(|| semaphore.add_permits(1));
                waiters[1].thread().interrupt();
                let _: [bool; 2] = waiters.map(|waiter| waiter.join().unwrap());
            });
            assert_eq!(semaphore.available_permits(), 1);
            semaphore.acquire().forget();
        }
    });
}
