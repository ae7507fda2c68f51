//! The handshake alone: one thread leaves its stack while another wakes it, and a third reads the
//! stack.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::state::Handshake;
use crate::{Word, check};

/// A virtual thread that parks.
struct Thread {
    handshake: Handshake,
    /// The saved context: written as the thread leaves its stack, read by the mounter.
    context: Word,
    /// Written by the waker before the wake, read by the thread after it.
    news: Word,
    enqueued: AtomicUsize,
}

impl Thread {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            handshake: Handshake::new(),
            context: Word::new(),
            news: Word::new(),
            enqueued: AtomicUsize::new(0),
        })
    }

    /// Leaves the thread's stack, unless it was woken already. Returns whether it has stayed.
    fn leave(&self) -> bool {
        if self.handshake.woken_early() {
            assert_eq!(self.news.read(), 1);
            return true;
        }
        self.context.write(1);
        if !self.handshake.parked() {
            self.enqueue();
        }
        false
    }

    fn wake(&self) {
        self.news.write(1);
        if self.handshake.wake() {
            self.enqueue();
        }
    }

    /// Reads the thread's stack if it is parked. Returns whether it was.
    fn inspect(&self) -> bool {
        let parked = self.handshake.begin_inspection();
        if parked {
            assert_eq!(self.context.read(), 1);
            if !self.handshake.end_inspection() {
                self.enqueue();
            }
        }
        parked
    }

    /// Enqueues the thread. The queue is short, so the thread is mounted at once.
    fn enqueue(&self) {
        self.enqueued.fetch_add(1, Relaxed);
        assert_eq!(self.context.read(), 1);
        self.handshake.resumed();
        assert_eq!(self.news.read(), 1);
        // It runs on, and its stack changes.
        self.context.write(2);
    }
}

#[test]
fn a_woken_thread_is_enqueued_once_or_stays() {
    check(3, || {
        let parking = Thread::new();
        let waker = {
            let parking = parking.clone();
            thread::spawn(move || parking.wake())
        };
        let stayed = parking.leave();
        waker.join().unwrap();
        assert_eq!(parking.enqueued.load(Relaxed), usize::from(!stayed));
    });
}

#[test]
fn a_second_episode_starts_afresh() {
    check(3, || {
        let parking = Thread::new();
        let first = {
            let parking = parking.clone();
            thread::spawn(move || parking.wake())
        };
        let stayed = parking.leave();
        first.join().unwrap();
        let before = usize::from(!stayed);

        let second = {
            let parking = parking.clone();
            thread::spawn(move || parking.wake())
        };
        let stayed = parking.leave();
        second.join().unwrap();
        assert_eq!(
            parking.enqueued.load(Relaxed) - before,
            usize::from(!stayed)
        );
    });
}

/// A thread is preempted on its way to being parked: others may see it already. It is mounted
/// again, and goes on.
#[test]
fn a_preempted_thread_keeps_an_early_wake() {
    check(3, || {
        let parking = Thread::new();
        let waker = {
            let parking = parking.clone();
            thread::spawn(move || parking.wake())
        };
        // Put aside: its context is saved, but it does not take part in the handshake.
        parking.context.write(1);
        let carrier = {
            let parking = parking.clone();
            thread::spawn(move || {
                assert_eq!(parking.context.read(), 1);
                parking.leave()
            })
        };
        let stayed = carrier.join().unwrap();
        waker.join().unwrap();
        assert_eq!(parking.enqueued.load(Relaxed), usize::from(!stayed));
    });
}

/// Whichever comes first, a reader sees a stack that no thread changes meanwhile, and the thread is
/// enqueued once.
#[test]
fn a_walked_thread_is_enqueued_once() {
    check(3, || {
        let parking = Thread::new();
        let (waker, reader) = (parking.clone(), parking.clone());
        let waker = thread::spawn(move || waker.wake());
        let reader = thread::spawn(move || reader.inspect());
        let stayed = parking.leave();
        waker.join().unwrap();
        let inspected = reader.join().unwrap();
        assert!(!(stayed && inspected));
        assert_eq!(parking.enqueued.load(Relaxed), usize::from(!stayed));
    });
}

/// One inspection, or two at once, leave a thread as it was, if no waker comes.
#[test]
fn an_inspection_leaves_no_trace() {
    check(3, || {
        let parking = Thread::new();
        assert!(!parking.leave());
        let readers = [(); 2].map(|()| {
            let parking = parking.clone();
            thread::spawn(move || parking.inspect())
        });
        let inspected = readers.map(|reader| reader.join().unwrap());
        assert!(inspected.contains(&true));
        assert_eq!(parking.enqueued.load(Relaxed), 0);
        parking.wake();
        assert_eq!(parking.enqueued.load(Relaxed), 1);
    });
}
