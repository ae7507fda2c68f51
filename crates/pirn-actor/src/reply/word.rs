//! The word of an answer's slot: it says which side owns the contents. Model-checked.
//!
//! ```text
//!   EMPTY --await_by--> THREAD or TASK --take_back--> EMPTY   by the asker
//!   GIVEN --taken--> TAKEN                                    by the asker
//!   EMPTY, THREAD, TASK, GIVEN --abandon--> ABANDONED         by the asker
//!   EMPTY, THREAD, TASK --give--> GIVEN                       by the giver
//!   EMPTY, THREAD --displace--> GIVEN                         by the giver
//! ```
//!
//! There is one asker and one giver, and each does one thing at a time. Each puts something into
//! the slot, and then changes the word, which hands it to the other side:
//!
//! ```text
//!   the waiter   the asker's, until `await_by` succeeds; then of the side that ends THREAD or TASK
//!   the answer   the giver's, until `give` or `displace` succeeds; then the asker's
//! ```
//!
//! The side that [leaves](Sides::leave) last frees the slot.

use crate::primitives::{AtomicU32, Ordering, fence};

const EMPTY: u32 = 0;
const GIVEN: u32 = 1;
const TAKEN: u32 = 2;
const ABANDONED: u32 = 3;
const THREAD: u32 = 4;
const TASK: u32 = 5;

/// The number of sides that have not left: 2 at first, and never more. An `Arc` would take four
/// locked instructions instead of one.
pub(crate) struct Sides(AtomicU32);

impl Sides {
    pub(crate) fn both() -> Sides {
        Sides(AtomicU32::new(2))
    }

    /// Notes that a side leaves. Returns true if it is the last one.
    pub(crate) fn leave(&self) -> bool {
        // Relaxed: if this reads 1, the other side has left, and no thread changes the count.
        let last = self.0.load(Ordering::Relaxed) == 1;
        if last || self.0.fetch_sub(1, Ordering::Release) == 1 {
            // Acquire: pairs with the Release of the other side in this function: its uses come
            // before the slot is freed.
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

/// What a finished asker still owns in the slot.
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

    /// Hands the waiter in the slot to the giver. Returns false if an answer has come: then the
    /// asker still owns the waiter.
    pub(crate) fn await_by(&self, by: By) -> bool {
        let by = match by {
            By::Thread => THREAD,
            By::Task => TASK,
        };
        // Release: pairs with the Acquire in `exchange`, after which the giver owns the waiter.
        // Relaxed on failure: the caller goes on to `is_given`.
        self.0
            .compare_exchange(EMPTY, by, Ordering::Release, Ordering::Relaxed)
            .is_ok()
    }

    /// Returns true if the asker owns its waiter again, and may set another one.
    pub(crate) fn take_back(&self) -> bool {
        // Relaxed: the asker has written the value itself.
        let before = self.0.load(Ordering::Relaxed);
        let exchange = || {
            self.0
                .compare_exchange(before, EMPTY, Ordering::Relaxed, Ordering::Relaxed)
        };
        matches!(before, THREAD | TASK) && exchange().is_ok()
    }

    /// Returns true if an answer has come, which the asker may take.
    pub(crate) fn is_given(&self) -> bool {
        // Acquire: pairs with the Release in `exchange`.
        self.0.load(Ordering::Acquire) == GIVEN
    }

    /// Notes that the asker has taken the answer, and is finished.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn taken(&self) {
        // Relaxed: the giver only checks whether the word is open, and touches nothing else.
        self.0.store(TAKEN, Ordering::Relaxed);
    }

    /// Notes that the asker is finished. Returns the contents that it owns.
    pub(crate) fn abandon(&self) -> Left {
        // Relaxed: only the asker writes `TAKEN`.
        if self.0.load(Ordering::Relaxed) == TAKEN {
            return Left::Nothing;
        }
        // Acquire: pairs with the Release in `exchange`, as in `is_given`.
        match self.0.swap(ABANDONED, Ordering::Acquire) {
            THREAD | TASK => Left::Waiter,
            GIVEN => Left::Answer,
            _ => Left::Nothing,
        }
    }

    #[allow(dead_code)] // the models do without it
    pub(crate) fn is_abandoned(&self) -> bool {
        // Relaxed: the asker may also abandon it right after the load.
        self.0.load(Ordering::Relaxed) == ABANDONED
    }

    /// Returns true if the giver may put and give an answer.
    #[allow(dead_code)] // the models do without it
    pub(crate) fn is_open(&self) -> bool {
        // Relaxed: only the giver itself, or a finished asker, closes it, and it stays closed.
        matches!(self.0.load(Ordering::Relaxed), EMPTY | THREAD | TASK)
    }

    /// Hands the answer in the slot to the asker. Returns the kind of the waiter, if there is one,
    /// which the giver then owns. Returns `None` if the asker is finished: then the giver still
    /// owns the answer.
    pub(crate) fn give(&self) -> Option<Option<By>> {
        self.exchange(true)
    }

    /// Does what `give` does, unless a task waits.
    pub(crate) fn displace(&self) -> Option<Option<By>> {
        self.exchange(false)
    }

    fn exchange(&self, also_from_task: bool) -> Option<Option<By>> {
        // Relaxed: the exchange below decides.
        let mut before = self.0.load(Ordering::Relaxed);
        loop {
            let by = match before {
                EMPTY => None,
                THREAD => Some(By::Thread),
                TASK if also_from_task => Some(By::Task),
                _ => return None,
            };
            // Release: pairs with the Acquire in `is_given` and `abandon`, for the answer. Acquire:
            // pairs with the Release in `await_by`, for the waiter.
            let (success, failure) = (Ordering::AcqRel, Ordering::Relaxed);
            match self.0.compare_exchange(before, GIVEN, success, failure) {
                Ok(_) => return Some(by),
                Err(other) => before = other,
            }
        }
    }
}
