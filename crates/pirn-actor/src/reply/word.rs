//! The word of the place for an answer: which side has what is in it; model-checked.
//!
//! ```text
//!   EMPTY --await_by--> THREAD or TASK --take_back--> EMPTY   by the asker
//!   GIVEN --taken--> TAKEN                                    by the asker
//!   EMPTY, THREAD, TASK, GIVEN --abandon--> ABANDONED         by the asker
//!   EMPTY, THREAD, TASK --give--> GIVEN                       by the giver
//!   EMPTY, THREAD --displace--> GIVEN                         by the giver
//! ```
//!
//! There is one asker and one giver, each of which does one thing at a time. Either puts something
//! into the place, and then changes the word, so that the other one has it:
//!
//! ```text
//!   the waiter   the asker's, until `await_by` succeeds; then of the one that ends THREAD or TASK
//!   the answer   the giver's, until `give` or `displace` succeeds; then the asker's
//! ```
//!
//! Whichever side [leaves](Sides::leave) last frees the place.

use crate::primitives::{AtomicU32, Ordering, fence};

const EMPTY: u32 = 0;
const GIVEN: u32 = 1;
const TAKEN: u32 = 2;
const ABANDONED: u32 = 3;
const THREAD: u32 = 4;
const TASK: u32 = 5;

/// The number of sides that have not left: a count of two, which nobody adds to. An `Arc` would
/// take four locked instructions in place of one.
pub(crate) struct Sides(AtomicU32);

impl Sides {
    pub(crate) fn both() -> Sides {
        Sides(AtomicU32::new(2))
    }

    /// A side leaves. Returns true if it is the last one.
    pub(crate) fn leave(&self) -> bool {
        // Relaxed: if the other side has left, nobody else looks at the count.
        let last = self.0.load(Ordering::Relaxed) == 1;
        if last || self.0.fetch_sub(1, Ordering::Release) == 1 {
            // Pairs with the Release of the other side, whose uses come before the memory is freed.
            fence(Ordering::Acquire);
            return true;
        }
        false
    }
}

/// The kind of a waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum By {
    Thread,
    Task,
}

/// What an asker that is done has left in the place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Left {
    Nothing,
    Waiter,
    Answer,
}

pub(crate) struct Word(AtomicU32);

impl Word {
    pub(crate) fn new() -> Word {
        Word(AtomicU32::new(EMPTY))
    }

    /// Says that what the asker has put there waits. Returns false if there is an answer: then that
    /// is the asker's again.
    pub(crate) fn await_by(&self, by: By) -> bool {
        let by = match by {
            By::Thread => THREAD,
            By::Task => TASK,
        };
        // Release: pairs with the giver's exchange, who has the waiter then. Relaxed on failure:
        // `is_given` comes next.
        self.0
            .compare_exchange(EMPTY, by, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns true if the asker has its waiter again, and may put another one.
    pub(crate) fn take_back(&self) -> bool {
        // Relaxed: it is the asker's own.
        let before = self.0.load(Ordering::Relaxed);
        let exchange = || {
            self.0
                .compare_exchange(before, EMPTY, Ordering::Relaxed, Ordering::Relaxed)
        };
        matches!(before, THREAD | TASK) && exchange().is_ok()
    }

    /// Returns true if there is an answer, which the asker may take.
    pub(crate) fn is_given(&self) -> bool {
        // Acquire: pairs with the giver's exchange.
        self.0.load(Ordering::Acquire) == GIVEN
    }

    /// The asker takes the answer, and is done.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn taken(&self) {
        // Relaxed: the giver looks whether it is open, and touches nothing else.
        self.0.store(TAKEN, Ordering::Relaxed);
    }

    /// The asker is done. Returns what is there and the asker's.
    pub(crate) fn abandon(&self) -> Left {
        // Relaxed: only the asker takes.
        if self.0.load(Ordering::Relaxed) == TAKEN {
            return Left::Nothing;
        }
        // Acquire: as in `is_given`.
        match self.0.swap(ABANDONED, Ordering::Acquire) {
            THREAD | TASK => Left::Waiter,
            GIVEN => Left::Answer,
            _ => Left::Nothing,
        }
    }

    #[allow(dead_code)] // the models do without it
    pub(crate) fn is_abandoned(&self) -> bool {
        // Relaxed: a hint.
        self.0.load(Ordering::Relaxed) == ABANDONED
    }

    /// Returns true if an answer may be put, and given.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: it is closed by the giver itself, or for good by an asker that is done.
        matches!(self.0.load(Ordering::Relaxed), EMPTY | THREAD | TASK)
    }

    /// Gives the answer that has been put there. Returns whether a thread waits, which is the
    /// giver's now; or nothing if the asker is done, and then the answer is the giver's again.
    pub(crate) fn give(&self) -> Option<Option<By>> {
        self.exchange(true)
    }

    /// Does the same, unless a task waits.
    pub(crate) fn displace(&self) -> Option<Option<By>> {
        self.exchange(false)
    }

    fn exchange(&self, also_from_task: bool) -> Option<Option<By>> {
        // Relaxed: the exchange decides.
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            let by = match before {
                EMPTY => None,
                THREAD => Some(By::Thread),
                TASK if also_from_task => Some(By::Task),
                _ => return None,
            };
            // Release: the asker finds the answer. Acquire: pairs with `await_by`.
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange(before, GIVEN, success, failure) {
                Ok(_) => return Some(by),
                Err(other) => before = other,
            }
        }
    }
}
