//! The wait word, alone and with the handshake: a waiter, an ordinary waker, interrupters.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::state::Handshake;
use crate::wait_word::Interruptible::{self, Always, OnceInSleep};
use crate::wait_word::{Decided, InterruptEffect, WaitWord};
use crate::{Word, check};

const READY: u32 = 2;
const INTERRUPTED: u32 = 5;

/// A virtual thread that waits, and the threads that end its wait.
struct Thread {
    word: WaitWord,
    handshake: Handshake,
    /// Written by the thread before it waits, read by the thread that has to wake it.
    prepared: Word,
    /// Written by the waker before the wake, read by the thread after it.
    news: Word,
    /// Written by the interrupter before the interrupt, read by the thread after it has learnt of
    /// that.
    order: Word,
    wakes: AtomicUsize,
    /// The number of waits that have ended, by how they ended.
    ready: AtomicUsize,
    interrupted: AtomicUsize,
}

impl Thread {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            word: WaitWord::idle(),
            handshake: Handshake::new(),
            prepared: Word::new(),
            news: Word::new(),
            order: Word::new(),
            wakes: AtomicUsize::new(0),
            ready: AtomicUsize::new(0),
            interrupted: AtomicUsize::new(0),
        })
    }

    /// Begins a wait. Returns `false` if the thread has been interrupted instead.
    fn begin(&self, interruptible: Interruptible) -> bool {
        self.prepared.write(1);
        let begun = self.word.begin(interruptible).is_ok();
        if !begun {
            assert_eq!(self.order.read(), 1);
        }
        begun
    }

    /// Parks: leaves the thread's stack, unless it was woken already.
    fn park(&self) {
        if self.handshake.woken_early() {
            self.resume();
        } else if !self.handshake.parked() {
            self.enqueue();
        }
    }

    fn wake(&self) {
        self.wakes.fetch_add(1, Relaxed);
        assert_eq!(self.prepared.read(), 1);
        if self.handshake.wake() {
            self.enqueue();
        }
    }

    /// Enqueues the thread. The queue is short, so the thread is mounted at once.
    fn enqueue(&self) {
        self.handshake.resumed();
        self.resume();
    }

    /// Runs the thread on, which looks how the wait has ended.
    fn resume(&self) {
        match self.word.outcome() {
            Some(READY) => {
                assert_eq!(self.news.read(), 1);
                self.ready.fetch_add(1, Relaxed);
            }
            Some(INTERRUPTED) => {
                assert_eq!(self.order.read(), 1);
                assert!(self.word.is_interrupted());
                self.interrupted.fetch_add(1, Relaxed);
            }
            outcome => panic!("woken with the outcome {outcome:?}"),
        }
    }

    fn ended(&self) -> [usize; 2] {
        [self.ready.load(Relaxed), self.interrupted.load(Relaxed)]
    }
}

/// Both return whether they have ended a wait.
fn waker(thread: &Arc<Thread>) -> thread::JoinHandle<bool> {
    let waiting = thread.clone();
    thread::spawn(move || {
        waiting.news.write(1);
        let ended = waiting.word.decide(READY).is_some();
        if ended {
            waiting.wake();
        }
        ended
    })
}

fn interrupter(thread: &Arc<Thread>) -> thread::JoinHandle<bool> {
    interrupter_by(WaitWord::interrupt, thread)
}

/// Interrupts by setting either bit of the flag.
fn interrupter_by(
    set: fn(&WaitWord, u32) -> InterruptEffect,
    thread: &Arc<Thread>,
) -> thread::JoinHandle<bool> {
    let waiting = thread.clone();
    thread::spawn(move || {
        waiting.order.write(1);
        let ended = set(&waiting.word, INTERRUPTED).ended.is_some();
        if ended {
            waiting.wake();
        }
        ended
    })
}

/// If the thread loads the word first, loom does not find out that the load could come after
/// another thread's exchange.
fn let_others_go_first() {
    thread::yield_now();
}

/// One wait. The waker may come before it, and then finds no waiter. The interrupter may come
/// before it too, and its interrupt is then delivered.
fn one_wait(interruptible: Interruptible) {
    check(3, move || {
        let thread = Thread::new();
        let others = [interrupter(&thread), waker(&thread)];
        let begun = thread.begin(interruptible);
        if begun {
            thread.park();
        }
        for other in others {
            other.join().unwrap();
        }
        assert_eq!(thread.wakes.load(Relaxed), usize::from(begun));
        let [ready, interrupted] = thread.ended();
        assert_eq!(
            ready + interrupted,
            usize::from(begun),
            "the wait has ended"
        );
        // An interrupt that ended nothing is delivered by the next wait.
        let refused_before = !begun || interrupted == 1;
        let refused_now = thread.word.begin(interruptible).is_err();
        assert_eq!(refused_now, !refused_before || interruptible == Always);
        assert!(thread.word.take());
        assert!(!thread.word.take());
    });
}

#[test]
fn a_wait_that_can_fail_ends_once_and_no_interrupt_is_lost() {
    one_wait(Always);
}

#[test]
fn a_wait_that_cannot_fail_ends_once_and_no_interrupt_is_lost() {
    one_wait(OnceInSleep);
}

/// The wake of the first episode and the interrupt, which may come in either episode, do not mix.
#[test]
fn a_second_episode_starts_afresh() {
    check(2, || {
        let thread = Thread::new();
        let mut interrupter = Some(interrupter(&thread));
        let mut begun = 0;
        for _ in 0..2 {
            if thread.begin(OnceInSleep) {
                begun += 1;
                let waker = waker(&thread);
                thread.park();
                if !waker.join().unwrap() {
                    let interrupter = interrupter.take().expect("it ends one wait");
                    assert!(interrupter.join().unwrap());
                }
                let [ready, interrupted] = thread.ended();
                assert_eq!(ready + interrupted, begun);
            }
        }
        if let Some(interrupter) = interrupter {
            interrupter.join().unwrap();
        }
        assert_eq!(thread.wakes.load(Relaxed), begun);
        assert!(begun >= 1, "one interrupt is delivered once");
        assert!(thread.word.is_interrupted());
    });
}

/// If a platform thread sleeps in the kernel, exactly one decider must wake it there. If it has not
/// gone to sleep, it sees what the decider did before.
#[test]
fn a_platform_thread_is_woken_in_the_kernel_if_it_sleeps() {
    check(3, || {
        let thread = Thread::new();
        thread.prepared.write(1);
        assert!(thread.word.begin(Always).is_ok());
        let waker = {
            let thread = thread.clone();
            thread::spawn(move || {
                thread.news.write(1);
                thread.word.decide(READY)
            })
        };
        let interrupter = {
            let thread = thread.clone();
            thread::spawn(move || {
                thread.order.write(1);
                thread.word.interrupt(INTERRUPTED).ended
            })
        };
        if thread.word.outcome().is_some() {
            thread.resume();
        }
        let asleep = match thread.word.fall_asleep() {
            Some(expected) => {
                // The kernel compares: a claimed waiter does not go to sleep.
                if thread.word.atomic().load(Relaxed) != expected {
                    thread.resume();
                }
                true
            }
            None => {
                thread.resume();
                false
            }
        };
        let decided = [waker.join().unwrap(), interrupter.join().unwrap()];
        let decided: Vec<Decided> = decided.into_iter().flatten().collect();
        assert_eq!(decided, [Decided { asleep }]);
        assert!(thread.word.is_interrupted());
    });
}

/// A thread that waits repeatedly gets two interrupts once or, if it got the first in
/// time, twice.
#[test]
fn two_interrupts_are_heard_once_or_twice() {
    check(3, || {
        let word = Arc::new(WaitWord::idle());
        let interrupters = [(), ()].map(|()| {
            let word = word.clone();
            thread::spawn(move || word.interrupt(INTERRUPTED).ended.is_some())
        });
        let mut delivered = 0;
        let mut wakes = 0;
        for _ in 0..2 {
            if word.begin(OnceInSleep).is_err() {
                delivered += 1;
            } else if word.decide(READY).is_none() {
                delivered += 1;
                wakes += 1;
            }
        }
        for interrupter in interrupters {
            wakes -= i32::from(interrupter.join().unwrap());
        }
        assert_eq!(wakes, 0, "who ended a wait owed the wake");
        delivered += i32::from(word.begin(OnceInSleep).is_err());
        assert!(
            delivered == 1 || delivered == 2,
            "delivered {delivered} times"
        );
        assert!(!word.is_interrupted() || word.take());
    });
}

/// Two interrupters and a thread that clears the flag: no interrupt is missed, and the writes
/// before each are seen.
#[test]
fn an_interrupt_is_taken_or_stays() {
    check(3, || {
        let word = Arc::new(WaitWord::idle());
        let before = Arc::new(AtomicUsize::new(0));
        let interrupters = [(), ()].map(|()| {
            let (word, before) = (word.clone(), before.clone());
            thread::spawn(move || {
                before.fetch_add(1, Relaxed);
                assert_eq!(word.interrupt(INTERRUPTED).ended, None);
            })
        });
        let_others_go_first();
        let first = word.take();
        // Relaxed: ordered by the interrupts; a stronger load would find fewer mistakes.
        let seen = before.load(Relaxed);
        for interrupter in interrupters {
            interrupter.join().unwrap();
        }
        let second = word.is_interrupted();
        assert_eq!(word.take(), second);
        assert!(first || second, "an interrupt was lost");
        assert!(!first || seen >= 1);
        assert!(second || seen == 2, "an interrupt was taken unseen");
        assert!(word.begin(Always).is_ok(), "all has been taken");
    });
}

/// A thread that finds the flag set sees what the interrupter did before.
#[test]
fn what_precedes_an_interrupt_is_seen_with_the_flag() {
    check(3, || {
        let thread = Thread::new();
        let interrupter = interrupter(&thread);
        let_others_go_first();
        if thread.word.is_interrupted() {
            assert_eq!(thread.order.read(), 1);
        }
        interrupter.join().unwrap();
    });
}

/// The listener finds that there was an interrupt, or the interrupter that there is a listener, or
/// both.
#[test]
fn a_listener_hears_of_an_interrupt() {
    check(3, || {
        let thread = Thread::new();
        let interrupter = {
            let thread = thread.clone();
            thread::spawn(move || {
                thread.order.write(1);
                let listened = thread.word.interrupt(INTERRUPTED).listened;
                if listened {
                    assert_eq!(thread.prepared.read(), 1);
                }
                listened
            })
        };
        thread.prepared.write(1);
        let delivered = thread.word.listen();
        if delivered {
            assert_eq!(thread.order.read(), 1);
        }
        let told = interrupter.join().unwrap();
        assert!(delivered || told);
    });
}

/// A deadline's expiry and another thread's interrupt, while the call that the deadline is for
/// returns. What is left is the interrupt, and it has not been delivered.
#[test]
fn an_expiry_that_is_forgotten_takes_no_interrupt_along() {
    check(3, || {
        let word = Arc::new(WaitWord::idle());
        let set = |set: fn(&WaitWord)| {
            let word = word.clone();
            thread::spawn(move || set(&word))
        };
        let expiry = set(|word| assert_eq!(word.expire(INTERRUPTED).ended, None));
        let interrupter = set(|word| assert_eq!(word.interrupt(INTERRUPTED).ended, None));
        expiry.join().unwrap();
        word.forget_expiry();
        interrupter.join().unwrap();
        assert!(
            word.begin(OnceInSleep).is_err(),
            "no wait has delivered the interrupt"
        );
        assert!(word.take(), "the interrupt was lost");
        assert!(word.begin(Always).is_ok());
    });
}

/// The same without an interrupt, by a thread that waits meanwhile: nothing is left.
#[test]
fn an_expiry_ends_a_wait_or_refuses_it() {
    check(3, || {
        let thread = Thread::new();
        let expiry = interrupter_by(WaitWord::expire, &thread);
        let begun = thread.begin(OnceInSleep);
        if begun {
            thread.park();
        }
        assert_eq!(expiry.join().unwrap(), begun);
        assert!(thread.word.is_interrupted());
        thread.word.forget_expiry();
        assert!(!thread.word.is_interrupted());
    });
}
