//! The mailbox: what has been sent and not been begun, and whether anybody is at work on it.
//!
//! Senders put items under a lock. Whoever works, the *runner*, takes all of them at once and goes
//! through them without the lock. One word tells either about the other (`word.rs`): how many items
//! have been begun, and what the runner is to look at.
//!
//! The runner lets waiting senders in not at each item but at every sixteenth of the capacity, and
//! when it has nothing left: a switch of threads per item would cost several times what the items
//! do.
//!
//! A kill, or a hold, interrupts the runner. It does so without the lock, since callbacks for
//! interrupts are the program's code, and may use this mailbox. Until it is done it is counted, and
//! a runner that takes interrupts away waits for that: so none comes late and meets what the thread
//! does afterwards.
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

mod runner;
mod waiting;
mod word;

pub(crate) use runner::{Batch, Next};
pub(crate) use waiting::{Line, Wait};

use crate::error::Refusal;
use crate::poison::locked;
use crate::snapshot::Load;
use pirn::thread::Thread;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use word::{END, HOLD, URGENT, Word};

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
    /// This thread lets time pass until the next item, or the end.
    Resting(Thread),
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

struct Shared<T> {
    /// What has been sent and not been taken by the runner, in order.
    queue: VecDeque<T>,
    /// What most mailboxes never have. Made when it is needed: there may be a million idle actors.
    extra: Option<Box<Extra<T>>>,
    /// The number of items that have been sent.
    sent: u64,
    phase: Phase,
    work: Work,
    /// The number of interrupts of the runner that are under way.
    interrupts: u32,
}

struct Extra<T> {
    /// What is to come before the queue.
    urgent: VecDeque<T>,
    /// Senders that wait for room, with their items.
    line: Line<T>,
}

impl<T> Mailbox<T> {
    /// Makes an empty mailbox, for `capacity` items that have not been begun, at least one.
    pub(crate) fn new(capacity: usize, overflow: Overflow) -> Mailbox<T> {
        Mailbox {
            word: Word::new(),
            capacity: capacity.max(1),
            overflow,
            shared: Mutex::new(Shared {
                queue: VecDeque::new(),
                extra: None,
                sent: 0,
                phase: Phase::Open,
                work: Work::Idle,
                interrupts: 0,
            }),
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

    /// Puts an item, unless there is no room or the mailbox is closed. The item that overflow has
    /// displaced, if any, is in the second place: the caller drops it outside of the lock.
    /// `displace` is called with it under the lock, before the runner can see the new one: it tells
    /// of this those who would otherwise be found waiting for what is not there any more.
    #[inline]
    pub(crate) fn try_push(
        &self,
        item: T,
        displace: impl FnOnce(&T),
    ) -> Result<(Then, Option<T>), (Refusal, T)> {
        let mut shared = self.lock();
        if shared.phase == Phase::Open && !self.is_full(&shared) {
            shared.enqueue(item);
            shared.sent += 1;
            return Ok((shared.started(), None));
        }
        self.push_anyway(shared, item, displace)
    }

    /// Puts an item for which there is no room, or does not.
    #[cold]
    fn push_anyway(
        &self,
        mut shared: MutexGuard<'_, Shared<T>>,
        item: T,
        displace: impl FnOnce(&T),
    ) -> Result<(Then, Option<T>), (Refusal, T)> {
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, item));
        }
        match self.overflow {
            Overflow::Wait | Overflow::Fail => Err((Refusal::Full, item)),
            Overflow::DropNew => Ok((Then::Nothing, Some(item))),
            Overflow::DropOld => {
                let oldest = shared.queue.pop_front().inspect(displace);
                shared.queue.push_back(item);
                shared.sent += u64::from(oldest.is_none());
                Ok((shared.started(), oldest))
            }
            // It has failed already: it is not ended because it cannot work just now.
            Overflow::Stop if matches!(shared.work, Work::Held) => Err((Refusal::Full, item)),
            Overflow::Stop => {
                let then = self.end_in(&mut shared, Phase::Overflowing);
                debug_assert_eq!(then, Then::Nothing, "a full mailbox has a runner");
                Err((Refusal::Closed, item))
            }
        }
    }

    /// Puts several items with nothing between them, or none. There is room for all of them if
    /// there is for one.
    pub(crate) fn try_push_all(&self, items: Vec<T>) -> Result<Then, (Refusal, Vec<T>)> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, items));
        }
        if self.is_full(&shared) {
            return Err((Refusal::Full, items));
        }
        shared.sent += items.len() as u64;
        shared.queue.extend(items);
        Ok(if shared.queue.is_empty() {
            Then::Nothing
        } else {
            shared.started()
        })
    }

    /// Puts an item before all others that have not been begun. Capacity is no limit to it.
    pub(crate) fn push_urgent(&self, item: T) -> Result<Then, (Refusal, T)> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, item));
        }
        shared.extra().urgent.push_back(item);
        shared.sent += 1;
        self.word.set(URGENT);
        Ok(shared.started())
    }

    /// Returns the number of items after which the runner looks whether senders wait.
    fn stride(&self) -> u64 {
        (self.capacity as u64 / 16).max(1)
    }

    /// Puts an item after all others. Capacity is no limit to it.
    pub(crate) fn push_beyond(&self, item: T) -> Result<Then, (Refusal, T)> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, item));
        }
        shared.queue.push_back(item);
        shared.sent += 1;
        Ok(shared.started())
    }

    /// Returns true if a sender has to wait: by the count, or because others wait already.
    fn is_full(&self, shared: &Shared<T>) -> bool {
        self.room(shared, self.begun()) == 0 || shared.line().is_some_and(|line| !line.is_empty())
    }

    /// Returns the number of items for which there is room, if so many have been begun.
    fn room(&self, shared: &Shared<T>, begun: u64) -> usize {
        let waiting = shared.sent.saturating_sub(begun) as usize;
        self.capacity.saturating_sub(waiting)
    }

    /// Has the mailbox end: at the latest phase that was asked for.
    pub(crate) fn end(&self, phase: Phase) -> Then {
        let (then, runner) = {
            let mut shared = self.lock();
            let is_new = shared.phase < phase;
            let then = self.end_in(&mut shared, phase);
            let interrupts = is_new && phase == Phase::Killing;
            (then, interrupts.then(|| shared.begin_interrupt()).flatten())
        };
        self.interrupt(runner);
        then
    }

    /// Interrupts the runner, if it is to be, which was counted under the lock.
    fn interrupt(&self, runner: Option<Thread>) {
        if let Some(runner) = runner {
            runner.interrupt();
            self.lock().interrupts -= 1;
            self.interrupted.notify_all();
        }
    }

    /// Locks when no interrupt of the runner is under way. Called by the runner, which is not
    /// interrupted any more as long as it has the lock.
    fn lock_settled(&self) -> MutexGuard<'_, Shared<T>> {
        let mut shared = self.lock();
        while shared.interrupts > 0 {
            let waited = self.interrupted.wait(shared);
            shared = waited.unwrap_or_else(PoisonError::into_inner);
        }
        shared
    }

    fn end_in(&self, shared: &mut Shared<T>, phase: Phase) -> Then {
        if shared.phase >= phase {
            return Then::Nothing;
        }
        shared.phase = phase;
        if phase > Phase::Closing {
            self.word.set(END);
        }
        // Those who wait for room take their items back.
        shared.wake_line();
        match &shared.work {
            Work::Running(_) => Then::Nothing,
            // One that is held ends when it is released, unless it must not wait for that.
            Work::Held if phase == Phase::Closing => Then::Nothing,
            Work::Resting(thread) => {
                thread.unpark();
                Then::Nothing
            }
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
        self.word.set(HOLD);
        if let Work::Resting(thread) = &shared.work {
            thread.unpark();
        }
        let runner = shared.begin_interrupt();
        let then = shared.started();
        drop(shared);
        self.interrupt(runner);
        then
    }

    /// Has a mailbox that is held go on. One that has not come to it yet will be held all the same.
    pub(crate) fn release(&self) -> Then {
        let mut shared = self.lock();
        if !matches!(shared.work, Work::Held) {
            return Then::Nothing;
        }
        self.word.clear(HOLD);
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
        shared.phase <= Phase::Closing && self.word.flags() & HOLD == 0
    }

    /// Closes the mailbox, and puts a last item behind all others. Capacity is no limit to it.
    pub(crate) fn close_with(&self, item: T) -> Result<Then, T> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err(item);
        }
        shared.queue.push_back(item);
        shared.sent += 1;
        shared.phase = Phase::Closing;
        shared.wake_line();
        Ok(shared.started())
    }

    /// Counts a runner as started that the caller starts without a message: to run a recipe.
    pub(crate) fn begin(&self) -> Then {
        self.lock().started()
    }
}

impl<T> Shared<T> {
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
        self.work = Work::Idle;
        let is_empty = |extra: &Extra<T>| extra.urgent.is_empty() && extra.line.is_empty();
        if self.extra.as_deref().is_some_and(is_empty) {
            self.extra = None;
        }
        if self.queue.capacity() > 1 {
            self.queue = VecDeque::new();
        }
    }

    /// Counts the runner as started, if there is none.
    fn started(&mut self) -> Then {
        match self.work {
            Work::Idle => {
                self.work = Work::Running(None);
                Then::Start
            }
            Work::Running(_) | Work::Held | Work::Resting(_) => Then::Nothing,
        }
    }

    /// Returns the runner's thread, if it is at work, and counts that it is being interrupted: the
    /// caller does it as soon as it has given the lock back.
    fn begin_interrupt(&mut self) -> Option<Thread> {
        let Work::Running(Some(thread)) = &self.work else {
            return None;
        };
        self.interrupts += 1;
        Some(thread.clone())
    }

    fn has_items(&self) -> bool {
        let extra = self.extra.as_deref();
        !self.queue.is_empty() || extra.is_some_and(|extra| !extra.urgent.is_empty())
    }
}
