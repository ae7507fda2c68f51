//! What is under a mailbox's lock.

use super::{Line, Phase, Then};
use pirn::thread::Thread;
use std::collections::VecDeque;

/// Whether a thread works on the items.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Work {
    /// There is nothing to do.
    Idle,
    /// A thread was started for it, or is at it.
    Running,
    /// It waits for [`Mailbox::release`](super::Mailbox::release).
    Held,
    /// The runner lets time pass until the next item, or the end.
    Resting,
}

pub(super) struct Shared<T> {
    /// What has been sent and not been taken by the runner, in order.
    pub(super) queue: VecDeque<T>,
    /// What most mailboxes never have. Made when it is needed: there may be a million idle actors.
    pub(super) extra: Option<Box<Extra<T>>>,
    /// The number of items that have been sent.
    pub(super) sent: u64,
    pub(super) phase: Phase,
    pub(super) work: Work,
    /// The runner's thread, from the moment at which it has come until it leaves.
    pub(super) runner: Option<Thread>,
    /// The number of interrupts of the runner that are under way.
    pub(super) interrupts: u32,
}

pub(super) struct Extra<T> {
    /// What is to come before the queue.
    pub(super) urgent: VecDeque<T>,
    /// Senders that wait for room, with their items.
    pub(super) line: Line<T>,
}

impl<T> Shared<T> {
    pub(super) const fn new() -> Shared<T> {
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
    pub(super) fn enqueue(&mut self, item: T) {
        if self.queue.capacity() == 0 {
            self.queue.reserve_exact(1);
        }
        self.queue.push_back(item);
    }

    /// Returns what most mailboxes never have.
    pub(super) fn extra(&mut self) -> &mut Extra<T> {
        self.extra.get_or_insert_with(|| {
            Box::new(Extra {
                urgent: VecDeque::new(),
                line: Line::new(),
            })
        })
    }

    /// Returns the senders that wait for room, if there have been any.
    pub(super) fn line(&self) -> Option<&Line<T>> {
        self.extra.as_deref().map(|extra| &extra.line)
    }

    /// Wakes the senders that wait for room. Each takes its own place out.
    pub(super) fn wake_line(&self) {
        if let Some(line) = self.line() {
            line.wake_all();
        }
    }

    /// There is nothing to do. The room of many items is given back: there may be a million actors
    /// that each had a lot to do once.
    pub(super) fn idle(&mut self) {
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
    pub(super) fn leave(&mut self, work: Work) {
        self.work = work;
        self.runner = None;
    }

    /// Counts the runner as started, if there is none.
    pub(super) fn started(&mut self) -> Then {
        match self.work {
            Work::Idle => {
                self.work = Work::Running;
                Then::Start
            }
            Work::Running | Work::Held | Work::Resting => Then::Nothing,
        }
    }

    /// Wakes the runner, if it lets time pass.
    pub(super) fn wake_resting(&self) {
        if self.work == Work::Resting
            && let Some(runner) = &self.runner
        {
            runner.unpark();
        }
    }

    /// Returns the runner's thread, if it is at work, and counts that it is being interrupted: the
    /// caller does it as soon as it has given the lock back.
    pub(super) fn begin_interrupt(&mut self) -> Option<Thread> {
        if self.work != Work::Running {
            return None;
        }
        let runner = self.runner.clone()?;
        self.interrupts += 1;
        Some(runner)
    }

    pub(super) fn has_items(&self) -> bool {
        let extra = self.extra.as_deref();
        !self.queue.is_empty() || extra.is_some_and(|extra| !extra.urgent.is_empty())
    }
}
