//! Permit and handshake together, as a virtual thread parks: several times, with several wakers,
//! which run the thread if they enqueue it, and with a reader, who does the same.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::state::Handshake;
use crate::state::ParkPermit;
use crate::{Word, check};

/// A virtual thread whose body parks `parks` times, and then ends.
struct VirtualThread {
    permit: ParkPermit,
    handshake: Handshake,
    /// Stands for its stack and saved registers: the number of parks that have returned. Loom
    /// checks that two carriers never have it mounted at once.
    stack: Word,
    parks: u32,
    ended: AtomicUsize,
}

impl VirtualThread {
    fn new(parks: u32) -> Arc<Self> {
        Arc::new(Self {
            permit: ParkPermit::new(),
            handshake: Handshake::new(),
            stack: Word::new(),
            parks,
            ended: AtomicUsize::new(0),
        })
    }

    /// Runs the thread, mounted on the current carrier, until it leaves its stack or ends.
    fn run(&self) {
        while self.stack.read() < self.parks {
            if !self.park() {
                return;
            }
            self.stack.write(self.stack.read() + 1);
        }
        self.ended.fetch_add(1, Relaxed);
    }

    /// Parks. Returns `true` if park returned on the current carrier, `false` if the thread has
    /// left it.
    fn park(&self) -> bool {
        if self.permit.try_consume() || !self.permit.begin_park() {
            return true;
        }
        if self.handshake.woken_early() {
            self.permit.end_park();
            return true;
        }
        self.stack.write(self.stack.read());
        if !self.handshake.parked() {
            self.mount();
        }
        false
    }

    fn unpark(&self) {
        if self.permit.unpark() && self.handshake.wake() {
            self.mount();
        }
    }

    fn expire(&self) {
        if self.permit.expire() && self.handshake.wake() {
            self.mount();
        }
    }

    /// Reads the thread's stack, if it is parked.
    fn inspect(&self) {
        if self.handshake.begin_inspection() {
            assert!(self.stack.read() < self.parks);
            if !self.handshake.end_inspection() {
                self.mount();
            }
        }
    }

    /// Takes the thread from the run queue on which the caller put it, and runs it.
    fn mount(&self) {
        self.handshake.resumed();
        self.permit.end_park();
        self.stack.write(self.stack.read() + 1);
        self.run();
    }

    fn has_ended(&self) -> bool {
        self.ended.load(Relaxed) == 1
    }
}

/// Starts the thread here and each of `wakers` in a thread of its own, and waits for them.
fn run_with(virtual_thread: &Arc<VirtualThread>, wakers: &[fn(&VirtualThread)]) {
    let wakers: Vec<_> = wakers
        .iter()
        .map(|&waker| {
            let virtual_thread = virtual_thread.clone();
            thread::spawn(move || waker(&virtual_thread))
        })
        .collect();
    virtual_thread.run();
    for waker in wakers {
        waker.join().unwrap();
    }
}

#[test]
fn one_unpark_returns_one_park() {
    check(3, || {
        let virtual_thread = VirtualThread::new(1);
        run_with(&virtual_thread, &[VirtualThread::unpark]);
        assert!(virtual_thread.has_ended());
    });
}

#[test]
fn unpark_and_expiry_return_one_park() {
    check(3, || {
        let virtual_thread = VirtualThread::new(1);
        run_with(
            &virtual_thread,
            &[VirtualThread::unpark, VirtualThread::expire],
        );
        assert!(virtual_thread.has_ended());
    });
}

/// Two unparks may make one permit, but a third one, after both, must make another.
#[test]
fn two_parks_need_no_more_than_a_last_unpark() {
    check(2, || {
        let virtual_thread = VirtualThread::new(2);
        run_with(
            &virtual_thread,
            &[VirtualThread::unpark, VirtualThread::unpark],
        );
        if !virtual_thread.has_ended() {
            virtual_thread.unpark();
        }
        assert!(virtual_thread.has_ended());
    });
}

/// Two wakers in sequence, in one thread: the second may come anywhere in the second episode.
#[test]
fn an_unpark_may_meet_the_next_park() {
    check(3, || {
        let virtual_thread = VirtualThread::new(2);
        run_with(
            &virtual_thread,
            &[|thread| {
                thread.unpark();
                thread.unpark();
            }],
        );
        if !virtual_thread.has_ended() {
            virtual_thread.unpark();
        }
        assert!(virtual_thread.has_ended());
    });
}

/// Two wakers and a reader, who may come in any episode, and wake up none and lose none.
#[test]
fn a_walker_loses_no_wake() {
    check(2, || {
        let virtual_thread = VirtualThread::new(2);
        run_with(
            &virtual_thread,
            &[
                VirtualThread::unpark,
                VirtualThread::unpark,
                VirtualThread::inspect,
            ],
        );
        if !virtual_thread.has_ended() {
            virtual_thread.unpark();
        }
        assert!(virtual_thread.has_ended());
    });
}

/// The same with a timeout as one of the wakers.
#[test]
fn a_walker_meets_an_expiry() {
    check(3, || {
        let virtual_thread = VirtualThread::new(1);
        run_with(
            &virtual_thread,
            &[
                VirtualThread::unpark,
                VirtualThread::expire,
                VirtualThread::inspect,
            ],
        );
        assert!(virtual_thread.has_ended());
    });
}
