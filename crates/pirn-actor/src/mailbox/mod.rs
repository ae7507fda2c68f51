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
//! `sending.rs` has the senders' side, `line.rs` the senders that wait for room, `runner.rs` the
//! runner's side, `ending.rs` what ends a mailbox, holds it and has it go on.
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
mod line;
mod runner;
mod sending;
mod word;

pub(crate) use line::Line;
pub(crate) use runner::{Batch, Next};

use crate::error::Refusal;
use crate::life::Load;
use crate::poison::locked;
use crate::time::Limit;
use pirn::thread::Thread;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard};
use word::Word;

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

/// What a sender does where there is no room for its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    /// It waits for room.
    Until(Limit),
    /// There is always room, before all others.
    Urgent,
    /// There is always room, after all others.
    Beyond,
}

/// What is done with a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    In,
    Wait(Limit),
    Refuse(Refusal),
    DropNew,
    DropOld,
    /// It is refused, and the actor ends.
    Stop,
}

impl Overflow {
    /// Decides what is done with a message: by mailboxes, by pools, by actors without a mailbox.
    pub(crate) fn admit(self, phase: Phase, is_full: bool, patience: Patience) -> Admission {
        match (self, patience) {
            _ if phase != Phase::Open => Admission::Refuse(Refusal::Closed),
            (_, Patience::Urgent | Patience::Beyond) => Admission::In,
            _ if !is_full => Admission::In,
            (Overflow::Wait, Patience::Until(limit)) => Admission::Wait(limit),
            (Overflow::Wait | Overflow::Fail, _) => Admission::Refuse(Refusal::Full),
            (Overflow::DropNew, _) => Admission::DropNew,
            (Overflow::DropOld, _) => Admission::DropOld,
            (Overflow::Stop, _) => Admission::Stop,
        }
    }
}

/// How far the mailbox is from its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
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

/// Whether a thread works on the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// There is nothing to do.
    Idle,
    /// A thread was started for it, or is at it.
    Running,
    /// It waits for [`Mailbox::release`](super::Mailbox::release).
    Held,
    /// The runner lets time pass until the next item, or the end.
    Resting,
}

struct Shared<T> {
    /// What has been sent and not been taken by the runner, in order.
    queue: VecDeque<T>,
    /// What most mailboxes never have. Made when it is needed: there may be a million idle actors.
    extra: Option<Box<Extra<T>>>,
    /// The number of items that have been sent.
    sent: u64,
    phase: Phase,
    work: Work,
    /// The runner's thread, from the moment at which it has come until it leaves.
    runner: Option<Thread>,
    /// The number of interrupts of the runner that are under way.
    interrupts: u32,
}

struct Extra<T> {
    /// What is to come before the queue.
    urgent: VecDeque<T>,
    /// Senders that wait for room, with their items.
    line: Line<T>,
}

impl<T> Shared<T> {
    const fn new() -> Shared<T> {
        Shared {
            queue: VecDeque::new(),
            extra: None,
            sent: 0,
            phase: Phase::Open,
            work: Work::Idle,
            runner: None,
            interrupts: 0,
        }
    }

    /// Puts an item behind all others. The first gets room for one, and not for four as by default:
    /// most actors have no more at a time, and keep that room while they are idle.
    #[inline]
    fn enqueue(&mut self, item: T) {
        if self.queue.capacity() == 0 {
            self.queue.reserve_exact(1);
        }
        self.queue.push_back(item);
    }

    /// Returns what most mailboxes never have.
    fn extra(&mut self) -> &mut Extra<T> {
        self.extra.get_or_insert_with(|| {
            Box::new(Extra {
                urgent: VecDeque::new(),
                line: Line::new(),
            })
        })
    }

    /// Returns the senders that wait for room, if there have been any.
    fn line(&self) -> Option<&Line<T>> {
        self.extra.as_deref().map(|extra| &extra.line)
    }

    /// Wakes the senders that wait for room. Each takes its own place out.
    fn wake_line(&self) {
        if let Some(line) = self.line() {
            line.wake_all();
        }
    }

    /// There is nothing to do. The room of many items is given back: there may be a million actors
    /// that each had a lot to do once.
    fn idle(&mut self) {
        self.leave(Work::Idle);
        let is_empty = |extra: &Extra<T>| extra.urgent.is_empty() && extra.line.is_empty();
        if self.extra.as_deref().is_some_and(is_empty) {
            self.extra = None;
        }
        if self.queue.capacity() > 1 {
            self.queue = VecDeque::new();
        }
    }

    /// The runner leaves, and nobody interrupts it any more.
    fn leave(&mut self, work: Work) {
        self.work = work;
        self.runner = None;
    }

    /// Counts the runner as started, if there is none.
    fn started(&mut self) -> Then {
        match self.work {
            Work::Idle => {
                self.work = Work::Running;
                Then::Start
            }
            Work::Running | Work::Held | Work::Resting => Then::Nothing,
        }
    }

    /// Wakes the runner, if it lets time pass.
    fn wake_resting(&self) {
        if self.work == Work::Resting
            && let Some(runner) = &self.runner
        {
            runner.unpark();
        }
    }

    /// Returns the runner's thread, if it is at work, and counts that it is being interrupted: the
    /// caller does it as soon as it has given the lock back.
    fn begin_interrupt(&mut self) -> Option<Thread> {
        if self.work != Work::Running {
            return None;
        }
        let runner = self.runner.clone()?;
        self.interrupts += 1;
        Some(runner)
    }

    fn has_items(&self) -> bool {
        let extra = self.extra.as_deref();
        !self.queue.is_empty() || extra.is_some_and(|extra| !extra.urgent.is_empty())
    }
}
