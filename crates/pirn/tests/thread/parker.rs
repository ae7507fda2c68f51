//! `Parker`: a permit in a place of its own.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::common::{crowd, many, on_virtual, watched};
use pirn::thread::{self, Interrupted, Parker};

fn soon() -> Instant {
    Instant::now() + Duration::from_millis(2)
}

#[watched]
fn a_permit_is_kept_once() {
    crowd(|_| {
        let parker = Parker::new();
        parker.unpark();
        parker.unpark();
        parker.park();
        assert!(!parker.park_until(soon()));
    });
}

#[watched]
fn the_threads_own_permit_is_another_one() {
    crowd(|_| {
        let parker = Parker::new();
        thread::current().unpark();
        assert!(!parker.park_until(soon()));
        parker.unpark();
        thread::park(); // by the other permit
        parker.park();
    });
}

#[watched]
fn what_was_done_before_is_seen_after() {
    let trips = many() as u64;
    crowd(|_| {
        let (there, back, value) = (Parker::new(), Parker::new(), AtomicU64::new(0));
        thread::scope(|s| {
            s.spawn(|| {
                for trip in 0..trips {
                    there.park();
                    // Relaxed: what is tested is that the parkers order it.
                    assert_eq!(value.load(Ordering::Relaxed), 2 * trip + 1);
                    value.store(2 * trip + 2, Ordering::Relaxed);
                    back.unpark();
                }
            });
            for trip in 0..trips {
                value.store(2 * trip + 1, Ordering::Relaxed);
                there.unpark();
                back.park();
                assert_eq!(value.load(Ordering::Relaxed), 2 * trip + 2);
            }
        });
    });
}

#[watched]
fn a_parker_may_be_gone_as_soon_as_its_thread_was_woken() {
    for _ in 0..many() {
        let parker = Arc::new(Parker::new());
        let giver = Arc::downgrade(&parker);
        let waiter = thread::spawn(move || parker.park());
        if let Some(parker) = giver.upgrade() {
            parker.unpark();
        }
        waiter.join().unwrap();
    }
}

#[watched]
fn an_interrupt_is_heard_where_that_is_asked_for() {
    let waits = thread::spawn(|| Parker::new().park_interruptible());
    waits.thread().interrupt();
    assert_eq!(waits.join().unwrap(), Err(Interrupted));

    let parker = Arc::new(Parker::new());
    let reason = Arc::clone(&parker);
    let does_not = thread::spawn(move || {
        reason.park();
        thread::is_interrupted()
    });
    does_not.thread().interrupt();
    parker.unpark();
    assert!(does_not.join().unwrap());
}

#[watched]
fn a_permit_counts_for_more_than_an_interrupt_or_the_time() {
    on_virtual(|| {
        let parker = Parker::new();
        parker.unpark();
        thread::current().interrupt();
        assert_eq!(parker.park_interruptible(), Ok(()));
        assert_eq!(parker.park_interruptible(), Err(Interrupted));
        thread::take_interrupt();
        parker.unpark();
        assert!(parker.park_until(Instant::now() - Duration::from_secs(1)));
        assert_eq!(parker.park_until_interruptible(soon()), Ok(false));
    });
}

#[watched]
fn a_permit_that_comes_with_the_end_of_the_time_is_not_lost() {
    for _ in 0..many() / 10 {
        let parker = Parker::new();
        thread::scope(|s| {
            s.spawn(|| parker.unpark());
            let deadline = Instant::now() + Duration::from_micros(20);
            if !parker.park_until(deadline) {
                parker.park();
            }
            assert!(!parker.park_until(deadline));
        });
    }
}

#[watched]
fn of_two_threads_that_wait_the_second_panics_and_the_first_waits_on() {
    let parker = Arc::new(Parker::new());
    let waiters = [(); 2].map(|()| {
        let parker = Arc::clone(&parker);
        thread::spawn(move || catch_unwind(AssertUnwindSafe(|| parker.park())).is_err())
    });
    while !waiters.iter().any(thread::JoinHandle::is_finished) {
        thread::yield_now();
    }
    parker.unpark();
    let panicked = waiters.map(|waiter| waiter.join().unwrap());
    assert_eq!(panicked.into_iter().filter(|panicked| *panicked).count(), 1);
}
