//! The place for an answer: an asker that comes to wait, or leaves, against the giver.

use loom::sync::atomic::{AtomicBool, Ordering};
use loom::sync::{Arc, Mutex};
use loom::thread::{self, JoinHandle};

use crate::reply_word::{By, Left, Sides, Word as State};
use crate::{Word, check};

const ANSWER: u32 = 7;

/// As `reply/slot.rs` has it.
struct Slot {
    word: State,
    answer: Word,
    waiter: Word,
    /// The number of the waiter that has been woken, or 0.
    woken: Mutex<u32>,
}

impl Slot {
    fn new() -> Arc<Slot> {
        Arc::new(Slot {
            word: State::new(),
            answer: Word::new(),
            waiter: Word::new(),
            woken: Mutex::new(0),
        })
    }

    fn is_given(&self) -> bool {
        let is_given = self.word.is_given();
        if is_given {
            assert_eq!(self.answer.read(), ANSWER);
        }
        is_given
    }

    /// Returns true if there is an answer.
    fn take_or_wait(&self, by: By, waiter: u32) -> bool {
        if self.is_given() {
            return true;
        }
        self.word.take_back();
        if self.is_given() {
            return true;
        }
        self.waiter.write(waiter);
        !self.word.await_by(by) && {
            assert!(self.is_given());
            true
        }
    }

    /// What the giver has done: true if the asker has the answer.
    fn given(&self, by: Option<Option<By>>, tell: impl FnOnce()) -> bool {
        if let Some(Some(_)) = by {
            let waiter = self.waiter.read();
            tell();
            *self.woken.lock().unwrap() = waiter;
        }
        by.is_some() || {
            self.answer.write(0); // it is the giver's again
            false
        }
    }

    fn give(&self) -> bool {
        self.answer.write(ANSWER);
        self.given(self.word.give(), || ())
    }

    /// In the end there is an answer, and the asker's only waiter was woken unless it `found` it.
    fn assert_given_to_one(&self, found: bool) {
        assert!(self.is_given());
        assert_eq!(*self.woken.lock().unwrap(), u32::from(!found));
    }
}

/// Has another thread do something to this.
fn beside<T, R>(this: &Arc<T>, act: impl FnOnce(&T) -> R + 'static) -> JoinHandle<R>
where
    T: 'static,
    R: 'static,
{
    let this = Arc::clone(this);
    thread::spawn(move || act(&this))
}

#[test]
fn whoever_waits_is_woken_or_finds_the_answer() {
    check(3, || {
        let slot = Slot::new();
        let giver = beside(&slot, Slot::give);
        let found = slot.take_or_wait(By::Thread, 1);
        assert!(giver.join().unwrap());
        slot.assert_given_to_one(found);
    });
}

#[test]
fn the_last_waiter_of_several_is_woken() {
    check(3, || {
        let slot = Slot::new();
        let giver = beside(&slot, Slot::give);
        let first = slot.take_or_wait(By::Task, 1);
        let second = first || slot.take_or_wait(By::Task, 2);
        assert!(giver.join().unwrap());
        let woken = *slot.woken.lock().unwrap();
        match (first, second) {
            (true, _) => assert_eq!(woken, 0),
            (_, true) => assert!(woken < 2),
            _ => assert_eq!(woken, 2),
        }
    });
}

#[test]
fn an_answer_that_nobody_wants_is_one_sides() {
    check(3, || {
        let slot = Slot::new();
        let giver = beside(&slot, Slot::give);
        let found = slot.take_or_wait(By::Thread, 1);
        let left = slot.word.abandon();
        match left {
            Left::Answer => assert_eq!(slot.answer.read(), ANSWER),
            Left::Waiter => slot.waiter.write(0), // it is the asker's again
            Left::Nothing => panic!("it has put a waiter, or found the answer"),
        }
        assert_eq!(giver.join().unwrap(), left == Left::Answer);
        assert!(left == Left::Answer || !found);
    });
}

#[test]
fn the_last_side_finds_what_the_other_one_has_left() {
    check(3, || {
        let place = Arc::new((Sides::both(), Word::new()));
        let other = beside(&place, |place| {
            place.1.write(1);
            place.0.leave()
        });
        let is_last = place.0.leave();
        if is_last {
            assert_eq!(place.1.read(), 1);
        }
        assert_ne!(is_last, other.join().unwrap());
    });
}

/// Two actors: the asker, whose request is in the mailbox of the other one, and the one that is
/// asked, which asks the asker by then. `true` in the mailbox is a message that has displaced the
/// request.
#[derive(Default)]
struct Actors {
    mailbox: Mutex<bool>,
    /// The asker waits, as the table of edges has it.
    edges: Mutex<bool>,
    over: AtomicBool,
}

impl Actors {
    /// The asker. Returns true if it has the answer without a wait.
    fn ask(&self, slot: &Slot) -> bool {
        if slot.take_or_wait(By::Thread, 1) {
            return true;
        }
        let mut edges = self.edges.lock().unwrap();
        // Relaxed: as in `Over`.
        *edges = !self.over.load(Ordering::Relaxed);
        false
    }

    /// A sender whose message takes the place of the request.
    fn displace(&self, slot: &Slot) -> bool {
        let mut mailbox = self.mailbox.lock().unwrap();
        slot.answer.write(ANSWER);
        let tell = || self.over.store(true, Ordering::Relaxed);
        let displaced = slot.given(slot.word.displace(), tell);
        *mailbox = true;
        displaced
    }

    /// The one who is asked comes to its next message, and is about to wait for the asker. Returns
    /// true if that would be taken for a circle.
    fn asks_back(&self) -> bool {
        let has_message = *self.mailbox.lock().unwrap();
        // While the request is there, the circle is real.
        has_message && {
            let edges = self.edges.lock().unwrap();
            *edges && !self.over.load(Ordering::Relaxed)
        }
    }
}

#[test]
fn whose_request_is_displaced_is_not_found_waiting() {
    check(3, || {
        let (slot, actors) = (Slot::new(), Arc::new(Actors::default()));
        let sender = {
            let (slot, actors) = (Arc::clone(&slot), Arc::clone(&actors));
            thread::spawn(move || actors.displace(&slot))
        };
        let asked = beside(&actors, Actors::asks_back);
        let found = actors.ask(&slot);
        assert!(sender.join().unwrap());
        assert!(!asked.join().unwrap());
        slot.assert_given_to_one(found);
    });
}

#[test]
fn a_task_whose_request_is_displaced_hears_of_it_when_that_is_dropped() {
    check(3, || {
        let slot = Slot::new();
        let giver = beside(&slot, |slot| {
            slot.answer.write(ANSWER);
            let displaced = slot.given(slot.word.displace(), || ());
            displaced || slot.give() // not under the lock
        });
        let found = slot.take_or_wait(By::Task, 1);
        assert!(giver.join().unwrap());
        slot.assert_given_to_one(found);
    });
}
