//! The join cell: the result is seen, and the joiner is woken once or not at all.

use core::ptr::NonNull;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::state::JoinCell;
use crate::{Word, check};

/// A thread that ends, and the state that its joiner needs.
struct Joined {
    cell: JoinCell,
    result: Word,
    /// The target of the pointer to the waiter: written by the joiner, read by the finisher.
    waiter: Word,
    wakes: AtomicUsize,
}

impl Joined {
    /// Returns the thread, about to run, and its running finisher.
    fn start() -> (Arc<Self>, thread::JoinHandle<()>) {
        let joined = Arc::new(Self {
            cell: JoinCell::new(),
            result: Word::new(),
            waiter: Word::new(),
            wakes: AtomicUsize::new(0),
        });
        let finisher = {
            let joined = joined.clone();
            thread::spawn(move || joined.finish())
        };
        (joined, finisher)
    }

    fn finish(&self) {
        self.result.write(1);
        if let Some(waiter) = self.cell.finish() {
            assert_eq!(waiter, self.waiter_pointer());
            assert_eq!(self.waiter.read(), 1);
            self.wakes.fetch_add(1, Relaxed);
        }
    }

    fn register(&self) -> bool {
        self.waiter.write(1);
        self.cell.register(self.waiter_pointer())
    }

    fn unregister(&self) -> bool {
        self.cell.unregister(self.waiter_pointer())
    }

    fn waiter_pointer(&self) -> NonNull<()> {
        NonNull::from(&self.waiter).cast()
    }

    fn wakes(&self) -> usize {
        self.wakes.load(Relaxed)
    }
}

#[test]
fn a_joiner_is_woken_or_finds_the_result() {
    check(3, || {
        let (joined, finisher) = Joined::start();
        let registered = joined.register();
        if !registered {
            assert_eq!(joined.result.read(), 1);
        }
        finisher.join().unwrap();
        assert!(joined.cell.is_done());
        assert_eq!(joined.wakes(), usize::from(registered));
    });
}

#[test]
fn a_result_that_is_reported_done_is_there() {
    check(3, || {
        let (joined, finisher) = Joined::start();
        if joined.cell.is_done() {
            assert_eq!(joined.result.read(), 1);
        }
        finisher.join().unwrap();
        assert!(joined.cell.is_done());
        assert_eq!(joined.wakes(), 0);
    });
}

#[test]
fn a_joiner_that_gives_up_is_not_woken() {
    check(3, || {
        let (joined, finisher) = Joined::start();
        let mut woken = 0;
        if joined.register() {
            if joined.unregister() {
                // The joiner owns the waiter again, while the finisher may still be running.
                joined.waiter.write(2);
            } else {
                woken = 1;
                assert_eq!(joined.result.read(), 1);
            }
        }
        finisher.join().unwrap();
        assert_eq!(joined.wakes(), woken);
    });
}

#[test]
fn a_joiner_may_give_up_and_come_back() {
    check(3, || {
        let (joined, finisher) = Joined::start();
        let mut woken = 0;
        if joined.register() {
            if joined.unregister() {
                woken = usize::from(joined.register());
            } else {
                woken = 1;
            }
        }
        finisher.join().unwrap();
        assert_eq!(joined.wakes(), woken);
        assert!(joined.cell.is_done());
    });
}

/// A future, polled twice: it takes its waker back, changes it, and registers it again; then it is
/// dropped. The joiner may write without synchronising to whatever it owns, and so may the
/// finisher.
#[test]
fn a_joiner_may_change_what_is_woken() {
    struct Polled {
        cell: JoinCell,
        result: Word,
        waker: Word,
        woken: AtomicUsize,
    }

    fn pointer(polled: &Polled) -> NonNull<()> {
        NonNull::from(&polled.waker).cast()
    }

    /// Polls once. Returns whether the joiner owns the waker.
    fn poll(polled: &Polled, number: u32, registered: bool) -> bool {
        let owned = !registered || polled.cell.unregister(pointer(polled));
        if owned {
            polled.waker.write(number);
        }
        owned
    }

    check(3, || {
        let polled = Arc::new(Polled {
            cell: JoinCell::new(),
            result: Word::new(),
            waker: Word::new(),
            woken: AtomicUsize::new(0),
        });
        let finisher = {
            let polled = polled.clone();
            thread::spawn(move || {
                polled.result.write(1);
                if polled.cell.finish().is_some() {
                    // It was woken and freed, and belongs to the finisher.
                    polled.woken.store(polled.waker.read() as usize, Relaxed);
                    polled.waker.write(0);
                }
            })
        };
        let (mut expected, mut registered) = (0, false);
        for number in 1..=2 {
            if !poll(&polled, number, registered) {
                expected = number - 1; // The finisher has the waker of the poll before.
                break;
            }
            registered = polled.cell.register(pointer(&polled));
            if !registered {
                break;
            }
        }
        if registered && expected == 0 && !poll(&polled, 3, true) {
            expected = 2; // Dropped too late.
        }
        if polled.cell.is_done() {
            assert_eq!(polled.result.read(), 1);
        }
        finisher.join().unwrap();
        assert_eq!(polled.woken.load(Relaxed), expected as usize);
    });
}
