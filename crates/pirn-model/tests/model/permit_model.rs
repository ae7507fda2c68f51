//! The park permit alone: one episode, its wakers, and which of them gets the duty to wake.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::state::ParkPermit;
use crate::{Word, check};

/// A thread that prepares, parks once and returns from park.
struct Parker {
    permit: ParkPermit,
    /// Written by the thread before it parks, read by the waker that has to wake it.
    prepared: Word,
    /// Written by each waker before it wakes, read when a permit has been used up.
    given: [Word; 2],
    /// The number of times park has returned.
    returns: AtomicUsize,
}

impl Parker {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            permit: ParkPermit::new(),
            prepared: Word::new(),
            given: [Word::new(), Word::new()],
            returns: AtomicUsize::new(0),
        })
    }

    /// Parks the thread. Returns whether it has returned without a wake, from a permit.
    fn park(&self) -> bool {
        if self.permit.try_consume() {
            self.returned();
            return true;
        }
        self.prepared.write(1);
        let parked = self.permit.begin_park();
        if !parked {
            self.returned();
        }
        !parked
    }

    fn unpark(&self, waker: usize) {
        self.given[waker].write(1);
        if self.permit.unpark() {
            self.wake();
        }
    }

    fn expire(&self) {
        if self.permit.expire() {
            self.wake();
        }
    }

    /// Runs the rest of the parked thread, as the winner of the duty to wake does.
    fn wake(&self) {
        assert_eq!(self.prepared.read(), 1);
        self.permit.end_park();
        self.returned();
    }

    fn returned(&self) {
        self.returns.fetch_add(1, Relaxed);
    }

    fn returns(&self) -> usize {
        self.returns.load(Relaxed)
    }
}

#[test]
fn what_precedes_unpark_is_seen_after_park() {
    check(3, || {
        let parker = Parker::new();
        let unparker = {
            let parker = parker.clone();
            thread::spawn(move || parker.unpark(0))
        };
        if parker.park() {
            assert_eq!(parker.given[0].read(), 1);
        }
        unparker.join().unwrap();
        assert_eq!(parker.returns(), 1);
        assert!(!parker.permit.try_consume(), "the permit was used up");
    });
}

#[test]
fn a_woken_thread_sees_what_precedes_every_permit_it_uses_up() {
    check(3, || {
        let parker = Parker::new();
        let unparkers = [0, 1].map(|waker| {
            let parker = parker.clone();
            thread::spawn(move || parker.unpark(waker))
        });
        parker.park();
        for unparker in unparkers {
            unparker.join().unwrap();
        }
        assert_eq!(parker.returns(), 1, "two unparks return one park, once");
    });
}

#[test]
fn an_expiry_and_an_unpark_wake_once() {
    check(3, || {
        let parker = Parker::new();
        let unparker = {
            let parker = parker.clone();
            thread::spawn(move || parker.unpark(0))
        };
        let timer = {
            let parker = parker.clone();
            thread::spawn(move || parker.expire())
        };
        parker.park();
        unparker.join().unwrap();
        timer.join().unwrap();
        assert_eq!(parker.returns(), 1);
    });
}

/// A late permit may be used up by the park that had expired, or stay for the next one. Either way
/// the thread then sees what precedes it.
#[test]
fn a_permit_after_the_expiry_is_used_up_or_stays() {
    check(3, || {
        let parker = Parker::new();
        parker.prepared.write(1);
        assert!(parker.permit.begin_park());
        let unparker = {
            let parker = parker.clone();
            thread::spawn(move || parker.unpark(0))
        };
        let expired = parker.permit.expire();
        if expired {
            let used_up = parker.permit.end_park();
            let stays = parker.permit.try_consume();
            assert!(!(used_up && stays), "one unpark gave two permits");
            if used_up || stays {
                assert_eq!(parker.given[0].read(), 1);
            }
        }
        unparker.join().unwrap();
        assert_eq!(parker.returns() == 1, !expired);
    });
}
