//! A thread that sleeps until others have work for it does not miss any, and no wake comes late.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::check;
use crate::sys::Sleeper;
use crate::time::Deadline;

/// Work comes before, during or after one sleep, which ends for that reason.
fn one_sleep(wakers: usize, deadline: fn() -> Deadline) {
    check(3, move || {
        let world = Arc::new((Sleeper::new(), AtomicUsize::new(0)));
        let wakers = Vec::from_iter((0..wakers).map(|_| {
            let world = world.clone();
            thread::spawn(move || {
                world.1.fetch_add(1, Relaxed);
                world.0.wake();
            })
        }));
        let has_work = || world.1.load(Relaxed) > 0;
        world.0.sleep_unless(deadline(), has_work);
        assert!(deadline().has_passed() || has_work());
        for waker in wakers {
            waker.join().unwrap();
        }
    });
}

#[test]
fn a_thread_with_work_wakes_the_sleeper() {
    one_sleep(1, || Deadline::NEVER);
}

#[test]
fn one_of_two_threads_with_work_wakes_the_sleeper() {
    one_sleep(2, || Deadline::after_nanos(1));
}

#[test]
fn a_sleep_ends_at_its_deadline() {
    one_sleep(0, || Deadline::after_nanos(0));
}
