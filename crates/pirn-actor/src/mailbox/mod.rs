//! The mailbox: what has been sent and not been begun, and whether anybody is at work on it.
//!
//! Senders put items under a lock. Whoever works, the *runner*, takes all of them at once and goes
//! through them without the lock. One word, on which sender and runner only do read-modify-writes,
//! tells either about the other:
//!
//! ```text
//!   word:   | messages begun, 60 bits | URGENT | ROOM | END | HOLD |
//!
//!   runner, before each item:  adds one to the count; a flag in the word?       -> look, under the lock
//!   sender that finds no room: waits in line, sets ROOM; begun more meanwhile?  -> there is room
//! ```
//!
//! Either the runner's addition comes first, and the sender counts again, or the flag does, and the
//! runner sees it: no sender waits beside a mailbox that has room.
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
//!   open --close--> closing --nothing left--> ended
//!   open, closing --stop, kill--> stopping --the current item is done--> ended
//! ```

mod runner;
mod waiting;

pub(crate) use runner::{Batch, Next};
pub(crate) use waiting::Wait;

use crate::error::Refusal;
use crate::poison::locked;
use crate::snapshot::Load;
use core::sync::atomic::{AtomicU64, Ordering};
use pirn::thread::Thread;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard};
use waiting::Line;

/// What a full mailbox does.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Overflow};
///
/// let builder = actor::Builder::new().capacity(1).overflow(Overflow::Fail);
/// let (unblock, blocked) = std::sync::mpsc::channel::<()>();
/// let busy = builder.consumer(move |()| drop(blocked.recv()));
/// busy.send(()).unwrap(); // taken up at once, or soon
/// let full = loop {
///     if let Err(error) = busy.send(()) {
///         break error;
///     }
/// };
/// assert!(full.is_full());
/// drop(unblock);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Overflow {
    /// The sender waits for room, in order of arrival: back-pressure.
    #[default]
    Wait,
    /// The send fails, and the message comes back.
    Fail,
    /// The new message is dropped.
    DropNew,
    /// The oldest message that has not been begun is dropped.
    DropOld,
    /// The actor ends, as one that failed. While its supervisor restarts it, the send fails.
    Stop,
}

/// A sender waits for room.
const ROOM: u64 = 1;
/// There is an urgent item.
const URGENT: u64 = 2;
/// The actor is to end after the current item.
const END: u64 = 4;
/// The actor is to pause after the current item.
const HOLD: u64 = 8;
const FLAGS: u64 = ROOM | URGENT | END | HOLD;
/// One item.
const ONE: u64 = 16;

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

/// Whether somebody works on the items.
#[derive(Debug)]
enum Work {
    /// There is nothing to do.
    Idle,
    /// A thread was started for it, or is at it.
    Running(Option<Thread>),
    /// It waits for [`Mailbox::release`].
    Held,
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
    word: AtomicU64,
    capacity: usize,
    overflow: Overflow,
    shared: Mutex<Shared<T>>,
}

struct Shared<T> {
    /// What has been sent and not been taken by the runner, in order.
    queue: VecDeque<T>,
    /// What is to come before that.
    urgent: VecDeque<T>,
    /// The number of items that have been sent.
    sent: u64,
    phase: Phase,
    work: Work,
    /// Senders that wait for room, with their items.
    line: Line<T>,
}

impl<T> Mailbox<T> {
    /// Makes an empty mailbox, for `capacity` items that have not been begun, at least one.
    pub(crate) fn new(capacity: usize, overflow: Overflow) -> Mailbox<T> {
        Mailbox {
            word: AtomicU64::new(0),
            capacity: capacity.max(1),
            overflow,
            shared: Mutex::new(Shared {
                queue: VecDeque::new(),
                urgent: VecDeque::new(),
                sent: 0,
                phase: Phase::Open,
                work: Work::Idle,
                line: Line::new(),
            }),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Shared<T>> {
        locked(&self.shared)
    }

    /// Returns the number of items begun so far.
    pub(crate) fn begun(&self) -> u64 {
        // Relaxed: for people, or under the lock with a recheck by `fetch_or`.
        self.word.load(Ordering::Relaxed) / ONE
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
            senders: shared.line.len(),
        }
    }

    pub(crate) fn phase(&self) -> Phase {
        self.lock().phase
    }

    /// Puts an item, unless there is no room or the mailbox is closed. The item that overflow has
    /// displaced, if any, is in the second place: the caller drops it outside of the lock.
    pub(crate) fn try_push(&self, item: T) -> Result<(Then, Option<T>), (Refusal, T)> {
        self.try_push_all([item]).map_err(|(refusal, items)| {
            let [item] = items;
            (refusal, item)
        })
    }

    /// Puts several items with nothing between them, or none. A mailbox has room for all of them
    /// if it has room for one.
    pub(crate) fn try_push_all<I>(&self, items: I) -> Result<(Then, Option<T>), (Refusal, I)>
    where
        I: IntoIterator<Item = T>,
    {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, items));
        }
        let mut displaced = None;
        if self.is_full(&shared) {
            match self.overflow {
                Overflow::Wait | Overflow::Fail => return Err((Refusal::Full, items)),
                // It has failed already: it is not ended because it cannot work just now.
                Overflow::Stop if matches!(shared.work, Work::Held) => {
                    return Err((Refusal::Full, items));
                }
                Overflow::DropNew => {
                    drop(shared);
                    drop(items.into_iter());
                    return Ok((Then::Nothing, None));
                }
                Overflow::DropOld => {
                    displaced = shared.queue.pop_front();
                    shared.sent -= u64::from(displaced.is_some());
                }
                Overflow::Stop => {
                    let then = self.end_in(&mut shared, Phase::Overflowing);
                    debug_assert_eq!(then, Then::Nothing, "a full mailbox has a runner");
                    return Err((Refusal::Closed, items));
                }
            }
        }
        for item in items {
            shared.queue.push_back(item);
            shared.sent += 1;
        }
        Ok((shared.started(), displaced))
    }

    /// Puts an item before all others that have not been begun. Capacity is no limit to it.
    pub(crate) fn push_urgent(&self, item: T) -> Result<Then, (Refusal, T)> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, item));
        }
        shared.urgent.push_back(item);
        shared.sent += 1;
        // Relaxed: the runner that sees the flag takes the lock.
        self.word.fetch_or(URGENT, Ordering::Relaxed);
        Ok(shared.started())
    }

    /// Returns true if a sender has to wait: by the count, or because others wait already.
    fn is_full(&self, shared: &Shared<T>) -> bool {
        self.room(shared, self.begun()) == 0 || !shared.line.is_empty()
    }

    /// Returns the number of items for which there is room, if so many have been begun.
    fn room(&self, shared: &Shared<T>, begun: u64) -> usize {
        let waiting = shared.sent.saturating_sub(begun) as usize;
        self.capacity.saturating_sub(waiting)
    }

    /// Has the mailbox end: at the latest phase that was asked for.
    pub(crate) fn end(&self, phase: Phase) -> Then {
        self.end_in(&mut self.lock(), phase)
    }

    fn end_in(&self, shared: &mut Shared<T>, phase: Phase) -> Then {
        if shared.phase >= phase {
            return Then::Nothing;
        }
        shared.phase = phase;
        if phase > Phase::Closing {
            // Relaxed: the runner that sees the flag takes the lock.
            self.word.fetch_or(END, Ordering::Relaxed);
        }
        // Those who wait for room take their items back.
        shared.line.wake_all();
        match &shared.work {
            Work::Running(Some(thread)) if phase == Phase::Killing => {
                // Under the lock: the runner forgets its thread, and the interrupt, under it.
                thread.interrupt();
                Then::Nothing
            }
            Work::Running(_) => Then::Nothing,
            // One that is held ends when it is released, unless it must not wait for that.
            Work::Held if phase == Phase::Closing => Then::Nothing,
            Work::Idle | Work::Held => {
                shared.work = Work::Running(None);
                Then::Start
            }
        }
    }

    /// Has the runner pause after the current item, which is interrupted. If there is no runner,
    /// one is to be started: it drops the state. A mailbox that is to end sooner is not held.
    pub(crate) fn hold(&self) -> Then {
        let mut shared = self.lock();
        if shared.phase > Phase::Closing || matches!(shared.work, Work::Held) {
            return Then::Nothing;
        }
        // Relaxed: the runner that sees the flag takes the lock.
        self.word.fetch_or(HOLD, Ordering::Relaxed);
        if let Work::Running(Some(thread)) = &shared.work {
            thread.interrupt();
        }
        shared.started()
    }

    /// Has a mailbox that is held go on. One that has not come to it yet will be held all the same.
    pub(crate) fn release(&self) -> Then {
        let mut shared = self.lock();
        if !matches!(shared.work, Work::Held) {
            return Then::Nothing;
        }
        // Relaxed: flags are set and taken down under the lock.
        self.word.fetch_and(!HOLD, Ordering::Relaxed);
        shared.work = Work::Running(None);
        Then::Start
    }

    pub(crate) fn is_held(&self) -> bool {
        matches!(self.lock().work, Work::Held)
    }

    /// Returns true if there will be items to handle, so that a state is needed: unless it is to
    /// pause or to end before the next one.
    pub(crate) fn goes_on(&self) -> bool {
        let shared = self.lock();
        // Relaxed: flags are set under the lock.
        shared.phase <= Phase::Closing && self.word.load(Ordering::Relaxed) & HOLD == 0
    }

    /// Counts a runner as started that the caller starts without a message: to run a recipe.
    pub(crate) fn begin(&self) -> Then {
        self.lock().started()
    }
}

impl<T> Shared<T> {
    /// Counts the runner as started, if there is none.
    fn started(&mut self) -> Then {
        match self.work {
            Work::Idle => {
                self.work = Work::Running(None);
                Then::Start
            }
            Work::Running(_) | Work::Held => Then::Nothing,
        }
    }
}
