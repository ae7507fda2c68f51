//! The mailbox: items that were sent and not begun, and whether a thread works on them.
//!
//! Senders put items in under a lock. The working thread, the *runner*, takes all of them at once
//! and handles them without the lock. One word connects the two sides (`word.rs`): it holds the
//! number of items begun, and flags for the runner.
//!
//! The runner lets waiting senders in at every sixteenth of the capacity, and when it has no item
//! left, not after each item: a switch of threads per item would cost several times as much as the
//! item.
//!
//! `sending.rs` has the senders' side, `line.rs` the senders that wait for room, `runner.rs` the
//! runner's side, `ending.rs` the ends, holds and releases.
//!
//! ```text
//!            send                     no item left
//!   idle ------------> running ----------------------> idle
//!     |                  |  ^
//!     | hold: a runner   |  | release
//!     | drops the state  |  |
//!     +----> running ----+  |   a failure, or hold: after the current item
//!                        v  |
//!                       held          (items wait, and no thread works)
//!
//!   running --an item is over, the next one is not due yet--> resting --in time--> running
//!
//!   open --close--> closing --no item left--> ended
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
    /// The sender waits for room, in order of arrival. This is back-pressure.
    #[default]
    Wait,
    /// The send fails, and the message comes back.
    Fail,
    /// The new message is dropped.
    DropNew,
    /// The oldest message that has not been begun is dropped.
    DropOld,
    /// The actor ends as a failed one. While its supervisor restarts it, the send fails instead.
    Stop,
}

/// What a sender does if there is no room for its message.
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

/// The decision about a message.
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
    /// Decides about a message. Called by mailboxes, by pools, by actors without a mailbox.
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
    /// It handles the items that it has, and ends.
    Closing,
    /// It finishes the current item, and ends.
    Stopping,
    /// The current item is interrupted, and it ends.
    Killing,
    /// It refused a message because of [`Overflow::Stop`], and ends.
    Overflowing,
    Ended,
}

/// What a caller that has changed a mailbox must do next.
#[must_use]
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Then {
    Nothing,
    /// Start a runner: the mailbox counts it as running.
    Start,
}

pub(crate) struct Mailbox<T> {
    /// See `word.rs`.
    word: Word,
    capacity: usize,
    overflow: Overflow,
    shared: Mutex<Shared<T>>,
    /// Notified when an interrupt that was under way is done.
    interrupted: Condvar,
}

impl<T> Mailbox<T> {
    /// Makes an empty mailbox with room for `capacity` items besides the current one, at least 1.
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

    /// Returns the numbers of items and of waiting senders.
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

    /// Returns true if no item waits, and the mailbox is open.
    pub(crate) fn is_quiet(&self) -> bool {
        let shared = self.lock();
        shared.phase == Phase::Open && shared.sent <= self.begun()
    }

    /// Returns the number of items after which the runner checks whether senders wait.
    fn stride(&self) -> u64 {
        (self.capacity as u64 / 16).max(1)
    }

    /// Counts a runner that the caller starts without an item, to run a recipe.
    pub(crate) fn begin(&self) -> Then {
        self.lock().started()
    }
}

/// Whether a thread works on the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// There is nothing to do.
    Idle,
    /// A runner was started, or works.
    Running,
    /// It waits for [`Mailbox::release`](super::Mailbox::release).
    Held,
    /// The runner rests until the next item is due, or the end.
    Resting,
}

struct Shared<T> {
    /// Items that were sent and not taken by the runner, in order.
    queue: VecDeque<T>,
    /// Parts that few mailboxes need. Allocated at first use: there may be a million idle actors.
    extra: Option<Box<Extra<T>>>,
    /// The number of items that have been sent.
    sent: u64,
    phase: Phase,
    work: Work,
    /// The runner's thread, from its first call until it leaves.
    runner: Option<Thread>,
    /// The number of interrupts of the runner that are under way.
    interrupts: u32,
}

struct Extra<T> {
    /// Items that come before the queue.
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

    /// Puts an item behind all others. The first one gets room for one item, not for the default of
    /// four: most actors have no more at a time, and keep that room while they are idle.
    #[inline]
    fn enqueue(&mut self, item: T) {
        if self.queue.capacity() == 0 {
            self.queue.reserve_exact(1);
        }
        self.queue.push_back(item);
    }

    /// Returns the parts that few mailboxes need.
    fn extra(&mut self) -> &mut Extra<T> {
        self.extra.get_or_insert_with(|| {
            Box::new(Extra {
                urgent: VecDeque::new(),
                line: Line::new(),
            })
        })
    }

    /// Returns the line of senders that wait for room, if there was ever one.
    fn line(&self) -> Option<&Line<T>> {
        self.extra.as_deref().map(|extra| &extra.line)
    }

    /// Wakes the senders that wait for room. Each takes its own place out of the line.
    fn wake_line(&self) {
        if let Some(line) = self.line() {
            line.wake_all();
        }
    }

    /// Notes that no item is left. Frees the room of many items: there may be a million actors that
    /// each had many once.
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

    /// Notes that the runner leaves. No thread interrupts it after this.
    fn leave(&mut self, work: Work) {
        self.work = work;
        self.runner = None;
    }

    /// Asks for a runner if the mailbox is idle, and counts it as running.
    fn started(&mut self) -> Then {
        match self.work {
            Work::Idle => {
                self.work = Work::Running;
                Then::Start
            }
            Work::Running | Work::Held | Work::Resting => Then::Nothing,
        }
    }

    /// Wakes the runner if it rests.
    fn wake_resting(&self) {
        if self.work == Work::Resting
            && let Some(runner) = &self.runner
        {
            runner.unpark();
        }
    }

    /// Returns the runner's thread if it works, and counts an interrupt of it as under way. The
    /// caller interrupts it as soon as it has released the lock.
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
