//! Interruption: callbacks of listeners.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Condvar, Mutex, mpsc};

use super::fixture::AN_HOUR;
use crate::common::{on_virtual, until_it_waits, waits, watched};
use pirn::thread::{self, Interrupted, Thread};

/// Counts how often it is called.
#[derive(Clone, Default)]
struct Calls(Arc<AtomicUsize>);

impl Calls {
    fn counter(&self) -> impl FnOnce() + Send + 'static {
        let calls = self.clone();
        move || {
            calls.0.fetch_add(1, SeqCst);
        }
    }

    fn count(&self) -> usize {
        self.0.load(SeqCst)
    }
}

/// Runs a test on a virtual thread and on a platform thread.
fn on_both(test: fn()) {
    on_virtual(test);
    std::thread::spawn(test).join().unwrap();
}

#[watched]
fn a_listener_is_called_once() {
    on_both(|| {
        let calls = Calls::default();
        let guard = thread::on_interrupt(calls.counter());
        for _ in 0..3 {
            thread::current().interrupt();
            assert!(thread::take_interrupt());
            assert_eq!(calls.count(), 1);
        }
        drop(guard);
        thread::current().interrupt();
        assert_eq!(calls.count(), 1);
    });
}

#[watched]
fn a_listener_is_called_at_once_if_there_has_been_an_interrupt() {
    on_both(|| {
        let calls = Calls::default();
        thread::current().interrupt();
        let guard = thread::on_interrupt(calls.counter());
        assert_eq!(calls.count(), 1);
        thread::current().interrupt();
        assert!(thread::take_interrupt());
        drop(guard);
        assert_eq!(calls.count(), 1);
        // A flag that was cleared is forgotten.
        let _guard = thread::on_interrupt(calls.counter());
        assert_eq!(calls.count(), 1);
    });
}

#[watched]
fn a_listener_whose_guard_is_gone_is_not_called() {
    on_both(|| {
        let calls = Calls::default();
        let first = thread::on_interrupt(calls.counter());
        let second = thread::on_interrupt(calls.counter());
        drop(first);
        thread::current().interrupt();
        assert_eq!(calls.count(), 1);
        drop(second);
        // The guard has dropped the callback's captures.
        assert_eq!(Arc::strong_count(&calls.0), 1);
    });
}

#[watched]
fn several_listeners_are_called_by_the_interrupter() {
    let (sender, receiver) = mpsc::channel();
    let callback = move || sender.send(thread::current().id()).unwrap();
    let waiter = thread::spawn(move || {
        let _guards = [(); 3].map(|()| thread::on_interrupt(callback.clone()));
        thread::sleep_interruptible(AN_HOUR)
    });
    until_it_waits(waiter.thread());
    let interrupted = waiter.thread().clone();
    let interrupter = thread::spawn(move || {
        interrupted.interrupt();
        thread::current().id()
    });
    assert_eq!(waiter.join().unwrap(), Err(Interrupted));
    let interrupter = interrupter.join().unwrap();
    assert_eq!(receiver.iter().collect::<Vec<_>>(), [interrupter; 3]);
}

#[watched]
fn other_threads_are_not_listened_to() {
    let calls = Calls::default();
    let _guard = thread::on_interrupt(calls.counter());
    on_virtual(|| thread::current().interrupt());
    std::thread::spawn(|| thread::current().interrupt())
        .join()
        .unwrap();
    assert_eq!(calls.count(), 0);
}

#[watched]
fn dropping_the_guard_waits_for_a_call_under_way() {
    let (begun, has_begun) = mpsc::channel();
    let (finish, may_finish) = mpsc::channel();
    let over = Arc::new(AtomicBool::new(false));
    let ended = Arc::clone(&over);
    let waiter = thread::spawn(move || {
        let over = Arc::clone(&ended);
        let guard = thread::on_interrupt(move || {
            begun.send(()).unwrap();
            may_finish.recv().unwrap();
            over.store(true, SeqCst);
        });
        thread::sleep_interruptible(AN_HOUR).unwrap_err();
        drop(guard);
        ended.load(SeqCst)
    });
    until_it_waits(waiter.thread());
    let interrupted = waiter.thread().clone();
    let interrupter = thread::spawn(move || interrupted.interrupt());
    has_begun.recv().unwrap();
    until_it_waits(waiter.thread()); // in `drop`
    for _ in 0..1000 {
        assert!(waits(waiter.thread()));
        thread::yield_now();
    }
    assert!(!over.load(SeqCst));
    finish.send(()).unwrap();
    assert!(waiter.join().unwrap(), "the call ended first");
    interrupter.join().unwrap();
}

/// Sleeps; if interrupted, interrupts the other one.
fn follow(own: mpsc::Sender<Thread>, other: mpsc::Receiver<Thread>) -> Result<(), Interrupted> {
    own.send(thread::current()).unwrap();
    let other = other.recv().unwrap();
    let followed = other.clone();
    let _guard = thread::on_interrupt(move || other.interrupt());
    let result = thread::sleep_interruptible(AN_HOUR);
    // If the guard were dropped first, the interrupter might not find it.
    while !followed.is_interrupted() {
        thread::yield_now();
    }
    result
}

#[watched]
fn threads_may_interrupt_each_other() {
    for _ in 0..100 {
        let [first, second] = [(); 2].map(|()| mpsc::channel());
        let left = thread::spawn(move || follow(first.0, second.1));
        let right = thread::spawn(move || follow(second.0, first.1));
        left.thread().interrupt();
        assert_eq!(left.join().unwrap(), Err(Interrupted));
        assert_eq!(right.join().unwrap(), Err(Interrupted));
    }
}

#[watched]
fn a_callback_that_panics_keeps_nobody_from_hearing() {
    on_both(|| {
        let (heard, hears) = mpsc::channel();
        let panics = thread::on_interrupt(|| panic!("a callback's panic"));
        let tells = thread::on_interrupt(move || heard.send(()).unwrap());
        thread::current().interrupt();
        assert_eq!(hears.try_recv(), Ok(()));
        drop((panics, tells));
        assert!(thread::take_interrupt());
    });
}

#[watched]
fn a_condition_ends_by_a_listener() {
    let shared = Arc::new((Mutex::new(false), Condvar::new()));
    let waiters: Vec<_> = (0..100)
        .map(|_| {
            let shared = Arc::clone(&shared);
            thread::spawn(move || {
                let waker = Arc::clone(&shared);
                let _guard = thread::on_interrupt(move || {
                    let _locked = waker.0.lock().unwrap();
                    waker.1.notify_all();
                });
                let go_on = |ready: &mut bool| !*ready && !thread::is_interrupted();
                let ready = shared.1.wait_while(shared.0.lock().unwrap(), go_on);
                *ready.unwrap()
            })
        })
        .collect();
    for waiter in &waiters {
        waiter.thread().interrupt();
    }
    for waiter in waiters {
        assert!(!waiter.join().unwrap());
    }
}

#[watched]
fn a_listener_against_an_interrupt() {
    for _ in 0..2000 {
        let calls = Calls::default();
        let counter = calls.counter();
        let listening = thread::spawn(move || {
            let guard = thread::on_interrupt(counter);
            let interrupted = thread::is_interrupted();
            drop(guard);
            interrupted
        });
        listening.thread().interrupt();
        let before_drop = listening.join().unwrap();
        let count = calls.count();
        assert!(count == 1 || count == 0 && !before_drop);
    }
}
