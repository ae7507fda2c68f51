//! One virtual thread that does things later: it sleeps until the first of them is due.
//!
//! It lives for as long as something is to be done. What it does is short: it sends messages.

use crate::poison::locked;
use core::cmp::Ordering;
use core::sync::atomic::{self, AtomicBool};
use core::time::Duration;
use pirn::thread::{self, Thread};
use std::collections::BinaryHeap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// Does something, and says when to do it again.
type Act = Box<dyn FnMut(Instant) -> Option<Instant> + Send>;

struct Timer {
    due: Instant,
    /// Timers for the same time are done in the order in which they were made.
    number: u64,
    act: Act,
    cancelled: Option<Arc<AtomicBool>>,
}

impl PartialEq for Timer {
    fn eq(&self, other: &Timer) -> bool {
        self.number == other.number
    }
}
impl Eq for Timer {}
impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Timer {
    /// The greatest is the one that is due first.
    fn cmp(&self, other: &Timer) -> Ordering {
        (other.due, other.number).cmp(&(self.due, self.number))
    }
}

struct Timers {
    heap: BinaryHeap<Timer>,
    made: u64,
    thread: Keeper,
}

/// The thread that keeps the timers.
enum Keeper {
    None,
    Starting,
    Sleeping(Thread),
}

static TIMERS: Mutex<Timers> = Mutex::new(Timers {
    heap: BinaryHeap::new(),
    made: 0,
    thread: Keeper::None,
});

/// How long a thread that keeps no timers stays.
const REST: Duration = Duration::from_millis(100);

/// Something that is to be done later, and perhaps again.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use std::time::Duration;
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let ticks = actor::consumer(move |()| drop(tell.send(())));
/// let timer = actor::every(&ticks, Duration::from_millis(1), ());
/// told.recv().unwrap();
/// told.recv().unwrap();
/// timer.cancel();
/// ```
#[derive(Clone, Debug)]
pub struct TimerHandle(Arc<AtomicBool>);

impl TimerHandle {
    /// Has it not be done any more. What is in a mailbox already stays there.
    pub fn cancel(&self) {
        // Relaxed: nothing else is communicated.
        self.0.store(true, atomic::Ordering::Relaxed);
    }

    /// Returns true if it has been cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.0.load(atomic::Ordering::Relaxed)
    }
}

/// Calls `f` once, after `delay`.
pub(crate) fn after(delay: Duration, f: impl FnOnce() + Send + 'static) {
    let mut f = Some(f);
    let act = move |_| {
        f.take().map(|f| f());
        None
    };
    add(Instant::now() + delay, Box::new(act), None);
}

/// Calls `act` at a time, and again whenever it says.
pub(crate) fn at(
    due: Instant,
    act: impl FnMut(Instant) -> Option<Instant> + Send + 'static,
) -> TimerHandle {
    let cancelled = Arc::new(AtomicBool::new(false));
    add(due, Box::new(act), Some(Arc::clone(&cancelled)));
    TimerHandle(cancelled)
}

fn add(due: Instant, act: Act, cancelled: Option<Arc<AtomicBool>>) {
    let mut timers = locked(&TIMERS);
    timers.made += 1;
    let number = timers.made;
    let is_first = timers.heap.peek().is_none_or(|first| due < first.due);
    timers.heap.push(Timer {
        due,
        number,
        act,
        cancelled,
    });
    match &timers.thread {
        Keeper::None => {
            timers.thread = Keeper::Starting;
            drop(timers);
            start();
        }
        Keeper::Sleeping(thread) if is_first => {
            let thread = thread.clone();
            drop(timers);
            thread.unpark();
        }
        Keeper::Starting | Keeper::Sleeping(_) => {}
    }
}

/// Starts the thread: a virtual one, or a platform thread, or none until the next timer is made.
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
        locked(&TIMERS).thread = Keeper::None;
    }
}

fn keep() {
    let this = thread::current();
    loop {
        let mut timers = locked(&TIMERS);
        let now = Instant::now();
        let wait = match timers.heap.peek() {
            Some(first) if first.due <= now => {
                let timer = timers
                    .heap
                    .pop()
                    .expect("it is there, and the lock is held");
                timers.thread = Keeper::Starting; // nobody needs to wake it
                drop(timers);
                act(timer);
                continue;
            }
            Some(first) => first.due - now,
            None if matches!(timers.thread, Keeper::Sleeping(_)) => {
                timers.thread = Keeper::None;
                return;
            }
            None => REST,
        };
        timers.thread = Keeper::Sleeping(this.clone());
        drop(timers);
        thread::park_timeout(wait);
    }
}

/// Does what is due. A panic has been reported by the hook, and concerns no other timer.
fn act(mut timer: Timer) {
    let is_cancelled = |flag: &Arc<AtomicBool>| flag.load(atomic::Ordering::Relaxed);
    if timer.cancelled.as_ref().is_some_and(is_cancelled) {
        return;
    }
    let due = timer.due;
    let again = catch_unwind(AssertUnwindSafe(|| (timer.act)(due))).unwrap_or(None);
    if let Some(due) = again {
        add(due, timer.act, timer.cancelled);
    }
}
