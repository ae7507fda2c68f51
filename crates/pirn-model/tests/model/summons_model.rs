//! A summons in the wait word: of a thread that waits, is about to, or answers.

use loom::sync::Arc;
use loom::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use loom::thread;

use crate::state::Handshake;
use crate::wait_word::Hearing::{self, Always, Summons};
use crate::wait_word::{Refused, WaitWord};
use crate::{Word, check};

const READY: u32 = 2;
const INTERRUPTED: u32 = 5;
const SUMMONED: u32 = 6;

/// A thread that is summoned.
struct Thread {
    word: WaitWord,
    handshake: Handshake,
    /// Written by the thread before it waits, read by the thread that has to wake it.
    prepared: Word,
    /// Written by the summoner before, read by the thread once it has answered.
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

fn summoner(thread: &Arc<Thread>) -> thread::JoinHandle<bool> {
    let thread = thread.clone();
    thread::spawn(move || {
        thread.order.write(1);
        let effect = thread.word.summon(SUMMONED);
        assert!(effect.first);
        if effect.ended.is_some() {
            thread.wake();
        }
        effect.ended.is_some()
    })
}

/// A wait, a summoner, and another that ends the wait.
fn one_wait(hearing: Hearing, end: fn(&WaitWord) -> bool) {
    check(3, move || {
        let thread = Thread::new();
        let summoner = summoner(&thread);
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
        let mut answered = false;
        let mut begun = false;
        match thread.word.begin(hearing) {
            Ok(()) => {
                begun = true;
                if thread.park() == Some(SUMMONED) {
                    answered = thread.word.answer();
                    assert!(answered);
                }
            }
            Err(Refused::Summoned) => {
                answered = thread.word.answer();
                assert!(answered);
            }
            Err(Refused::Interrupted) => {}
        }
        if answered {
            assert_eq!(thread.order.read(), 1);
        }
        let ended = [summoner.join().unwrap(), other.join().unwrap()];
        let ended = ended.iter().filter(|ended| **ended).count();
        assert_eq!(thread.wakes.load(Relaxed), ended);
        assert!(ended <= usize::from(begun), "a wait ended twice");
        assert_eq!(
            thread.word.answer(),
            !answered,
            "a summons is lost, or came twice"
        );
    });
}

#[test]
fn a_wait_ends_once_and_no_summons_is_lost() {
    one_wait(Always, |word| word.decide(READY).is_some());
}

#[test]
fn an_interrupt_and_a_summons_do_not_mix() {
    one_wait(Always, |word| word.interrupt(INTERRUPTED).ended.is_some());
}

#[test]
fn a_wait_that_is_deaf_to_interrupts_hears_a_summons() {
    one_wait(Summons, |word| {
        assert_eq!(word.interrupt(INTERRUPTED).ended, None);
        false
    });
}

/// Two summoners and a thread that answers: what either did before is seen by the answer, or there
/// is another to come.
#[test]
fn a_summons_is_answered_or_stays() {
    check(3, || {
        let word = Arc::new(WaitWord::idle());
        let before = Arc::new(AtomicUsize::new(0));
        let summoners = [(), ()].map(|()| {
            let (word, before) = (word.clone(), before.clone());
            thread::spawn(move || {
                before.fetch_add(1, Relaxed);
                assert_eq!(word.summon(SUMMONED).ended, None);
            })
        });
        thread::yield_now(); // As in the models of the interrupt.
        let first = word.answer();
        // Relaxed: ordered by the summons; a stronger load would find fewer mistakes.
        let seen = before.load(Relaxed);
        for summoner in summoners {
            summoner.join().unwrap();
        }
        let second = word.answer();
        assert!(first || second, "a summons was lost");
        assert!(!first || seen >= 1);
        assert!(second || seen == 2, "a summons was answered unseen");
    });
}

/// A caller that summons a thread that has answered before sees what it did before the answer.
#[test]
fn a_later_summons_comes_after_what_precedes_the_answer() {
    check(3, || {
        let thread = Thread::new();
        let summoner = {
            let thread = thread.clone();
            thread::spawn(move || {
                assert!(thread.word.summon(SUMMONED).first);
                if thread.word.summon(SUMMONED).first {
                    assert_eq!(thread.prepared.read(), 1);
                }
            })
        };
        thread.prepared.write(1);
        thread::yield_now();
        let _ = thread.word.answer();
        summoner.join().unwrap();
    });
}
