//! The mailbox: what has been sent and not been begun, and whether anybody is at work on it.
//!
//! Senders put items under a lock. The thread that works, the *runner*, takes all of them at once
//! and goes through them without the lock. One word tells either about the other (`word.rs`): how
//! many items have been begun, and what the runner is to look at.
//!
//! The runner lets waiting senders in not at each item but at every sixteenth of the capacity, and
//! when it has nothing left: a switch of threads per item would cost several times what the items
//! do.
//!
//! Those who send are in `sending.rs`, and those of them who wait for room in `waiting.rs`; who
//! works in `runner.rs`; who ends it, holds it or has it go on in `ending.rs`.
//!
//! ```text
//!            send                     nothing left
//!   idle ------------> running ----------------------> idle
//!     |                  |  ^
//!     | hold: a runner   |  | release
//!     | drops the state  |  |
//!     +----> running ----+  |   a failure, or hold: after the current item
//!                        v  |
//!                       held          (items wait, and nobody works)
//!
//!   running --an item is over, the next one is not to follow yet--> resting --in time--> running
//!
//!   open --close--> closing --nothing left--> ended
//!   open, closing --stop, kill--> stopping --the current item is done--> ended
//! ```

mod ending;
mod overflow;
mod runner;
mod sending;
mod shared;
mod waiting;
mod word;

pub use overflow::Overflow;
pub(crate) use runner::{Batch, Next};
pub(crate) use waiting::{Line, Wait};

use crate::poison::locked;
use crate::snapshot::Load;
use shared::{Shared, Work};
use std::sync::{Condvar, Mutex, MutexGuard};
use word::Word;

/// How far the mailbox is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    Open,
    /// What is there will be handled, and then it ends.
    Closing,
    /// The current item will be finished.
    Stopping,
    /// The current item is interrupted.
    Killing,
    /// It did not take what was sent to it, by [`Overflow::Stop`].
    Overflowing,
    Ended,
}

/// What a caller that has changed a mailbox owes it.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// To start a runner: the mailbox counts it as running.
    Start,
}

pub(crate) struct Mailbox<T> {
    /// See the head of this file.
    word: Word,
    capacity: usize,
    overflow: Overflow,
    shared: Mutex<Shared<T>>,
    /// An interrupt is over that was under way.
    interrupted: Condvar,
}

impl<T> Mailbox<T> {
    /// Makes an empty mailbox, for `capacity` items that have not been begun, at least one.
    pub(crate) fn new(capacity: usize, overflow: Overflow) -> Mailbox<T> {
        Mailbox {
            word: Word::new(),
            capacity: capacity.max(1),
            overflow,
            shared: Mutex::new(Shared::new()),
            interrupted: Condvar::new(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        locked(&self.shared)
    }

    /// Returns the number of items begun so far.
    pub(crate) fn begun(&self) -> u64 {
        self.word.begun()
    }

    /// Returns the number of items that have not been begun. Without senders that wait for room.
    pub(crate) fn len(&self) -> usize {
        let shared = self.lock();
        shared.sent.saturating_sub(self.begun()) as usize
    }

    /// Returns what there is to do.
    pub(crate) fn load(&self) -> Load {
        let shared = self.lock();
        let begun = self.begun();
        Load {
            begun,
            waiting: shared.sent.saturating_sub(begun) as usize,
            senders: shared.line().map_or(0, Line::len),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Returns true if nothing waits, and no end has been asked for.
    pub(crate) fn is_quiet(&self) -> bool {
        let shared = self.lock();
        shared.phase == Phase::Open && shared.sent <= self.begun()
    }

    /// Returns the number of items after which the runner looks whether senders wait.
    fn stride(&self) -> u64 {
        (self.capacity as u64 / 16).max(1)
    }

    /// Counts a runner as started that the caller starts without a message: to run a recipe.
    pub(crate) fn begin(&self) -> Then {
        self.lock().started()
    }
}
