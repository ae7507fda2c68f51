//! Timers: one virtual thread that calls functions later. It sleeps until the first timer is due.
//!
//! The thread lives while there are timers. Their functions are short: they send messages, and
//! never wait for room.
//!
//! ```text
//!            due                At(time)
//!   queued -------> being done ---------> queued
//!                       |   Resting                again(number, time)
//!                       +----------------> resting --------------------> queued
//!                       |   Over
//!                       v
//!                     gone               cancelled, or its receiver has ended: gone from anywhere
//! ```
//!
//! A timer that is gone is in no table, so cancelled timers take no memory. A timer that goes while
//! it is being done is dropped afterwards.
//!
//! Rejected: a heap with a cancelled flag per timer. It is faster by a third, but a server that
//! sets and cancels a time limit of one hour per request would keep them all.

use crate::ending::Watching;
use crate::error::{Exit, discard};
use crate::life::Actor;
use crate::poison::locked;
use core::time::Duration;
use pirn::thread::{self, Panic, Thread};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard};
use std::time::Instant;

/// The function of a timer. Called with the timer's number and the time for which it was due.
type Act = Box<dyn FnMut(u64, Instant) -> Next + Send>;

/// What happens to a timer that was done.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Next {
    /// The timer is gone.
    Over,
    /// It is done again at this time.
    At(Instant),
    /// It is done again when [`again`] sets a time.
    Resting,
}

struct Timer {
    /// `None` while the timer is being done.
    act: Option<Act>,
    /// When it is to be done, if that is known. It is queued if `act` and `due` are both set.
    due: Option<Instant>,
    /// The watch of the actor whose end removes the timer.
    receiver: Option<Watching>,
}

struct Timers {
    /// Timers for the same time are done in the order in which they were made.
    queue: BTreeSet<(Instant, u64)>,
    /// All timers, by their numbers.
    all: BTreeMap<u64, Timer>,
    made: u64,
    keeper: Keeper,
}

/// The timers' thread.
enum Keeper {
    None,
    /// It will look at the queue before it sleeps.
    Awake,
    Sleeping(Thread),
}

static TIMERS: Mutex<Timers> = Mutex::new(Timers {
    queue: BTreeSet::new(),
    all: BTreeMap::new(),
    made: 0,
    keeper: Keeper::None,
});

/// How long the thread stays when there are no timers.
const REST: Duration = Duration::from_millis(if cfg!(test) { 1 } else { 100 });

/// Stands for a time too far away for an `Instant`.
const FAR: Duration = Duration::from_secs(30 * 365 * 24 * 3600);

impl Timers {
    /// Queues a timer if it is not being done and has a time. Returns true if it is now the first.
    fn queue_up(&mut self, number: u64) -> bool {
        if let Some(timer) = self.all.get(&number)
            && timer.act.is_some()
            && let Some(due) = timer.due
        {
            self.queue.insert((due, number));
            return self.queue.first() == Some(&(due, number));
        }
        false
    }

    /// Takes a timer out. The caller drops it after the lock is released.
    fn remove(&mut self, number: u64) -> Option<Timer> {
        let timer = self.all.remove(&number)?;
        if let Some(due) = timer.due {
            self.queue.remove(&(due, number));
        }
        Some(timer)
    }
}

/// A handle of a timer.
///
/// Dropping it changes nothing.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::Duration;
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let ticks = actor::consumer(move |()| drop(tell.send(())));
/// let timer = actor::time::every(&ticks, Duration::from_millis(1), ());
/// told.recv().unwrap();
/// told.recv().unwrap();
/// assert!(timer.cancel());
/// assert!(timer.is_over());
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimerHandle {
    number: u64,
}

impl TimerHandle {
    /// The handle of a timer that never existed.
    pub(crate) const OVER: TimerHandle = TimerHandle { number: 0 };

    /// Cancels the timer. Returns true if it would have been done again.
    ///
    /// A message that is in the mailbox stays there, and a message that is being sent arrives.
    pub fn cancel(&self) -> bool {
        let timer = locked(&TIMERS).remove(self.number);
        timer.is_some()
    }

    /// Cancels the timer when an actor ends.
    pub(crate) fn end_with(&self, receiver: &(dyn Actor + 'static)) {
        let timer = self.clone();
        let cancel = Box::new(move |_: &Exit| _ = timer.cancel());
        // Dropped without the lock if the timer is gone.
        let mut watching = Some(Watching::begin(&receiver.this(), cancel));
        if let Some(timer) = locked(&TIMERS).all.get_mut(&self.number) {
            timer.receiver = watching.take();
        }
    }

    /// Returns true if the timer is gone: it was done, it was cancelled, or its receiver has ended.
    pub fn is_over(&self) -> bool {
        !locked(&TIMERS).all.contains_key(&self.number)
    }
}

/// Returns the time that is `delay` later.
pub(crate) fn later(now: Instant, delay: Duration) -> Instant {
    now.checked_add(delay).unwrap_or_else(|| now + FAR)
}

/// Calls `f` once, after `delay`.
pub(crate) fn after(delay: Duration, f: impl FnOnce() + Send + 'static) -> TimerHandle {
    let mut f = Some(f);
    at(later(Instant::now(), delay), move |_| {
        if let Some(f) = f.take() {
            f();
        }
        None
    })
}

/// Calls `act` at a time, and again at the times that it returns.
pub(crate) fn at(
    due: Instant,
    mut act: impl FnMut(Instant) -> Option<Instant> + Send + 'static,
) -> TimerHandle {
    let act = move |_, due| act(due).map_or(Next::Over, Next::At);
    add(due, Box::new(act))
}

/// Calls `act` at a time, and again as it says.
pub(crate) fn add(due: Instant, act: Act) -> TimerHandle {
    let mut timers = locked(&TIMERS);
    timers.made += 1;
    let number = timers.made;
    let timer = Timer {
        act: Some(act),
        due: Some(due),
        receiver: None,
    };
    timers.all.insert(number, timer);
    let is_first = timers.queue_up(number);
    wake(timers, is_first);
    TimerHandle { number }
}

/// Sets the time of a resting timer, unless it is gone.
fn again(number: u64, due: Instant) {
    let mut timers = locked(&TIMERS);
    if let Some(timer) = timers.all.get_mut(&number) {
        timer.due = Some(due);
        let is_first = timers.queue_up(number);
        wake(timers, is_first);
    }
}

/// Lies in the mailbox with a message. Its drop sets the time of a resting timer, `delay` later.
pub(crate) struct Handled {
    pub(crate) number: u64,
    pub(crate) delay: Duration,
}

impl Drop for Handled {
    fn drop(&mut self) {
        again(self.number, later(Instant::now(), self.delay));
    }
}

/// Makes the thread look at the queue, unless it is about to.
fn wake(mut timers: MutexGuard<'_, Timers>, is_first: bool) {
    match &timers.keeper {
        _ if timers.queue.is_empty() => {}
        Keeper::None => {
            timers.keeper = Keeper::Awake;
            drop(timers);
            start();
        }
        Keeper::Sleeping(thread) if is_first => {
            let thread = thread.clone();
            drop(timers);
            thread.unpark();
        }
        Keeper::Awake | Keeper::Sleeping(_) => {}
    }
}

/// Starts the thread: a virtual one, or else a platform thread, or else none until the next timer.
fn start() {
    let name = || "actor timers".to_string();
    let made = thread::Builder::new().name(name()).spawn(keep).map(drop);
    let made = made.or_else(|_| {
        std::thread::Builder::new()
            .name(name())
            .spawn(keep)
            .map(drop)
    });
    if made.is_err() {
        locked(&TIMERS).keeper = Keeper::None;
    }
}

fn keep() {
    let this = thread::current();
    let mut has_rested = false;
    loop {
        let mut timers = locked(&TIMERS);
        timers.keeper = Keeper::Awake;
        let now = Instant::now();
        let wait = match timers.queue.first() {
            Some(&(due, number)) if due <= now => {
                timers.queue.pop_first();
                do_one(timers, number, due);
                has_rested = false;
                continue;
            }
            Some((due, _)) => *due - now,
            None if has_rested => {
                timers.keeper = Keeper::None;
                return;
            }
            None => REST,
        };
        has_rested = timers.queue.is_empty();
        timers.keeper = Keeper::Sleeping(this.clone());
        drop(timers);
        thread::park_timeout(wait);
    }
}

/// Calls the function of a timer that was taken from the queue.
fn do_one(mut timers: MutexGuard<'_, Timers>, number: u64, due: Instant) {
    let timer = timers.all.get_mut(&number);
    let timer = timer.expect("what is in the queue is in the table");
    timer.due = None;
    let mut act = timer.act.take().expect("it is not being done");
    drop(timers);
    let next = Panic::catch(|| act(number, due)).unwrap_or(Next::Over);
    let mut timers = locked(&TIMERS);
    if let Some(timer) = timers.all.get_mut(&number)
        && !matches!(next, Next::Over)
    {
        timer.act = Some(act);
        if let Next::At(due) = next {
            timer.due = Some(due);
        }
        timers.queue_up(number);
        return;
    }
    let timer = timers.remove(number);
    drop(timers);
    discard(timer);
    discard(act);
}

#[cfg(test)]
mod tests;
