//! A reader asks for a thread's CPU time while its carrier ends the run. By the kernel's clock, the
//! thread has used at least what it had when the reader began, and at most what it has at the end.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering::SeqCst};
use loom::thread;

use crate::check;
use crate::run::Began;

#[test]
fn a_run_that_ends_is_counted_once() {
    check(3, || {
        let world = Arc::new((
            Began(AtomicU64::new(0)),
            AtomicU64::new(0),
            AtomicU64::new(5),
        ));
        world.0.begin(5);
        let carrier = {
            let world = world.clone();
            thread::spawn(move || {
                let (began, used, clock) = &*world;
                clock.store(7, SeqCst);
                began.end(used, 2, 7);
                // Another thread's run, of which this one must get nothing.
                clock.store(8, SeqCst);
            })
        };
        let (began, used, clock) = &*world;
        if let Some(time) = began.read(used, || clock.load(SeqCst)) {
            assert!(time <= 3, "counted twice: {time}");
        }
        carrier.join().unwrap();
        assert_eq!(began.read(used, || clock.load(SeqCst)), Some(3));
    });
}

/// The clock stands still, so each answer is exact.
#[test]
fn a_run_that_ends_is_not_left_out() {
    check(3, || {
        let world = Arc::new((Began(AtomicU64::new(0)), AtomicU64::new(0)));
        world.0.begin(5);
        let carrier = {
            let world = world.clone();
            thread::spawn(move || world.0.end(&world.1, 2, 7))
        };
        let time = world.0.read(&world.1, || 7);
        assert!(time.is_none_or(|time| time == 2), "{time:?}");
        carrier.join().unwrap();
    });
}
