//! A safe point request in the wait word: to a thread that waits, is about to, or takes a request.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::state::Handshake;
use crate::wait_word::Interruptible::{self, Always, Never};
use crate::wait_word::{Refused, WaitWord};
use crate::{Word, check};

const READY: u32 = 2;
const INTERRUPTED: u32 = 5;
const SAFE_POINT: u32 = 6;

/// A thread that has requests.
struct Thread {
    word: WaitWord,
    handshake: Handshake,
    /// Written by the thread before it waits, read by the thread that has to wake it.
    prepared: Word,
    /// Written by the requester before, read by the thread once it has taken the request.
    order: Word,
    wakes: AtomicUsize,
}

impl Thread {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: WaitWord::idle(),
            handshake: Handshake::new(),
            prepared: Word::new(),
            order: Word::new(),
            wakes: AtomicUsize::new(0),
        })
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, Relaxed);
        assert_eq!(self.prepared.read(), 1);
        if self.handshake.wake() {
            self.handshake.resumed();
        }
    }

    /// Parks until the wait has ended. Returns whether it is known how.
    fn park(&self) -> Option<u32> {
        if self.handshake.woken_early() || !self.handshake.parked() {
            return self.word.outcome();
        }
        None
    }
}

fn requester(thread: &Arc<Thread>) -> thread::JoinHandle<bool> {
    let thread = thread.clone();
    thread::spawn(move || {
        thread.order.write(1);
        let effect = thread.word.request_safe_point(SAFE_POINT);
        assert!(effect.first);
        if effect.ended.is_some() {
            thread.wake();
        }
        effect.ended.is_some()
    })
}

/// A wait, a requester, and another thread that ends the wait.
fn one_wait(interruptible: Interruptible, end: fn(&WaitWord) -> bool) {
    check(3, move || {
        let thread = Thread::new();
        let requester = requester(&thread);
        let other = {
            let thread = thread.clone();
            thread::spawn(move || {
                let ended = end(&thread.word);
                if ended {
                    thread.wake();
                }
                ended
            })
        };
        thread.prepared.write(1);
        let mut taken = false;
        let mut begun = false;
        match thread.word.begin(interruptible) {
            Ok(()) => {
                begun = true;
                if thread.park() == Some(SAFE_POINT) {
                    taken = thread.word.take_request();
                    assert!(taken);
                }
            }
            Err(Refused::SafePoint) => {
                taken = thread.word.take_request();
                assert!(taken);
            }
            Err(Refused::Interrupted) => {}
        }
        if taken {
            assert_eq!(thread.order.read(), 1);
        }
        let ended = [requester.join().unwrap(), other.join().unwrap()];
        let ended = ended.iter().filter(|ended| **ended).count();
        assert_eq!(thread.wakes.load(Relaxed), ended);
        assert!(ended <= usize::from(begun), "a wait ended twice");
        assert_eq!(
            thread.word.take_request(),
            !taken,
            "a request is lost, or came twice"
        );
    });
}

#[test]
fn a_wait_ends_once_and_no_request_is_lost() {
    one_wait(Always, |word| word.decide(READY).is_some());
}

#[test]
fn an_interrupt_and_a_request_do_not_mix() {
    one_wait(Always, |word| word.interrupt(INTERRUPTED).ended.is_some());
}

#[test]
fn a_request_ends_a_wait_that_no_interrupt_ends() {
    one_wait(Never, |word| {
        assert_eq!(word.interrupt(INTERRUPTED).ended, None);
        false
    });
}

/// Two requesters and a thread that takes requests: it sees what either did before, or there
/// is another to come.
#[test]
fn a_request_is_taken_or_stays() {
    check(3, || {
        let word = Arc::new(WaitWord::idle());
        let before = Arc::new(AtomicUsize::new(0));
        let requesters = [(), ()].map(|()| {
            let (word, before) = (word.clone(), before.clone());
            thread::spawn(move || {
                before.fetch_add(1, Relaxed);
                assert_eq!(word.request_safe_point(SAFE_POINT).ended, None);
            })
        });
        thread::yield_now(); // As in the models of the interrupt.
        let first = word.take_request();
        // Relaxed: ordered by the request; a stronger load would find fewer mistakes.
        let seen = before.load(Relaxed);
        for requester in requesters {
            requester.join().unwrap();
        }
        let second = word.take_request();
        assert!(first || second, "a request was lost");
        assert!(!first || seen >= 1);
        assert!(second || seen == 2, "a request was taken unseen");
    });
}

/// A caller that requests a safe point of a thread that has taken a request before sees what it did
/// before that.
#[test]
fn a_later_request_comes_after_what_precedes_the_former_one_being_taken() {
    check(3, || {
        let thread = Thread::new();
        let requester = {
            let thread = thread.clone();
            thread::spawn(move || {
                assert!(thread.word.request_safe_point(SAFE_POINT).first);
                if thread.word.request_safe_point(SAFE_POINT).first {
                    assert_eq!(thread.prepared.read(), 1);
                }
            })
        };
        thread.prepared.write(1);
        thread::yield_now();
        let _ = thread.word.take_request();
        requester.join().unwrap();
    });
}
