//! A waker that has claimed a wait cannot be stopped before the wake.

use pirn_rt::blocking::wait::{Outcome, Wait, WakeList};
use pirn_rt::no_suspend;
use pirn_rt::vthread::wait_reason::{Kind, WaitReason};
use std::sync::atomic::{AtomicPtr, Ordering};

/// Makes a virtual thread wait, and calls `claim_and_wake` with its wait.
fn with_waiter(claim_and_wake: impl FnOnce(&Wait) + Send) {
    let published = AtomicPtr::<Wait>::new(std::ptr::null_mut());
    crate::thread::scope(|scope| {
        scope.spawn(|| {
            let wait = Wait::new(WaitReason::new(Kind::Park, 0));
            published.store((&raw const wait).cast_mut(), Ordering::Release);
            assert_eq!(wait.block(), Outcome::Ready);
        });
        scope.spawn(|| {
            let wait = loop {
                match published.load(Ordering::Acquire) {
                    wait if wait.is_null() => crate::thread::yield_now(),
                    wait => break wait,
                }
            };
            // SAFETY: it stays until it has been claimed.
            claim_and_wake(unsafe { &*wait });
        });
    });
}

#[test]
fn a_waker_cannot_be_stopped_between_the_claim_and_the_wake() {
    with_waiter(|wait| {
        assert!(!no_suspend::is_on());
        let wakeup = wait.claim(Outcome::Ready).unwrap();
        assert!(no_suspend::is_on());
        wakeup.perform();
        assert!(!no_suspend::is_on());
    });
    with_waiter(|wait| {
        let mut wakes = WakeList::new();
        wakes.push(wait.claim(Outcome::Ready).unwrap());
        assert!(no_suspend::is_on());
        assert_eq!(wakes.perform(), 1);
        assert!(!no_suspend::is_on());
    });
}
