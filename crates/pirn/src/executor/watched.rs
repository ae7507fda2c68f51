//! Waiting for a change of some shared state, on either kind of thread, with a limit of time and an
//! ear for interrupts.
//!
//! A `Condvar` hears no interrupts on platform threads. So this is a list of waiting threads, and
//! parking: an interrupt gives a permit on both kinds. Permits may be left over and end a later
//! `park` early, as any `park` may end.

use crate::poison::locked;
use crate::thread::{self, Thread, ThreadId};
use std::mem;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long to wait, and whether an interrupt ends it.
#[derive(Clone, Copy)]
pub(super) struct WaitLimit {
    /// None: for ever.
    deadline: Option<Instant>,
    interruptible: bool,
}

/// Why a wait came to its end before what was waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum GaveUp {
    TimedOut,
    Interrupted,
}

impl WaitLimit {
    pub(super) const UNTIL_INTERRUPTED: WaitLimit = WaitLimit {
        deadline: None,
        interruptible: true,
    };

    /// From now on. A timeout of centuries is none.
    pub(super) fn timeout(timeout: Duration) -> WaitLimit {
        WaitLimit {
            deadline: Instant::now().checked_add(timeout),
            interruptible: false,
        }
    }

    pub(super) fn interruptible(self) -> WaitLimit {
        WaitLimit {
            interruptible: true,
            ..self
        }
    }

    /// Parks once.
    fn park(self) -> Result<(), GaveUp> {
        if self.interruptible && thread::is_interrupted() {
            return Err(GaveUp::Interrupted);
        }
        match self.deadline {
            None => thread::park(),
            Some(deadline) => match deadline.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Err(GaveUp::TimedOut),
                left => thread::park_timeout(left),
            },
        }
        Ok(())
    }
}

/// Some state, and the threads and tasks that wait for it to change.
pub(super) struct Watched<S>(Mutex<Guarded<S>>);

struct Guarded<S> {
    state: S,
    waiting: Watchers,
}

/// Mostly there is one, and no need to allocate for it.
#[derive(Default)]
struct Watchers {
    first: Option<Watcher>,
    others: Vec<Watcher>,
}

enum Watcher {
    Thread(Thread),
    Waker(Waker),
}

impl Watcher {
    fn wake(self) {
        match self {
            Watcher::Thread(thread) => thread.unpark(),
            Watcher::Waker(waker) => waker.wake(),
        }
    }

    fn is(&self, id: ThreadId) -> bool {
        matches!(self, Watcher::Thread(thread) if thread.id() == id)
    }
}

impl Watchers {
    fn add(&mut self, waiter: Watcher) {
        match &self.first {
            None => self.first = Some(waiter),
            Some(_) => self.others.push(waiter),
        }
    }

    fn has(&self, id: ThreadId) -> bool {
        self.first
            .iter()
            .chain(&self.others)
            .any(|waiter| waiter.is(id))
    }

    fn remove(&mut self, id: ThreadId) {
        self.first.take_if(|waiter| waiter.is(id));
        self.others.retain(|waiter| !waiter.is(id));
    }
}

impl<S> Watched<S> {
    pub(super) fn new(state: S) -> Watched<S> {
        Watched(Mutex::new(Guarded {
            state,
            waiting: Watchers::default(),
        }))
    }

    /// Ignores poisoning: nothing that runs under the lock can panic half-way.
    fn lock(&self) -> MutexGuard<'_, Guarded<S>> {
        locked(&self.0)
    }

    /// Looks at the state, or changes it in a way that nobody waits for. `f` must not run user
    /// code.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        f(&mut self.lock().state)
    }

    /// Changes the state, and wakes all that wait. `f` must not run user code.
    pub(super) fn change<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        let mut guard = self.lock();
        let result = f(&mut guard.state);
        let waiting = mem::take(&mut guard.waiting);
        drop(guard);
        for waiter in waiting.first.into_iter().chain(waiting.others) {
            waiter.wake();
        }
        result
    }

    /// Waits until `ready` gives something.
    ///
    /// What is there at once is given even if the time is up or the thread has been interrupted.
    pub(super) fn wait<R>(
        &self,
        limit: WaitLimit,
        mut ready: impl FnMut(&mut S) -> Option<R>,
    ) -> Result<R, GaveUp> {
        let mut ended = None;
        let mut me = None;
        loop {
            let mut guard = self.lock();
            let result = ready(&mut guard.state);
            if let Some(over) = result.map(Ok).or(ended.map(Err)) {
                if let Some(me) = me {
                    guard.waiting.remove(me);
                }
                return over;
            }
            if !me.is_some_and(|me| guard.waiting.has(me)) {
                let thread = thread::current();
                me = Some(thread.id());
                guard.waiting.add(Watcher::Thread(thread));
            }
            drop(guard);
            ended = limit.park().err();
        }
    }

    /// As [`wait`](Self::wait), for as long as it takes.
    pub(super) fn wait_forever<R>(&self, mut ready: impl FnMut(&mut S) -> Option<R>) -> R {
        let limit = WaitLimit {
            deadline: None,
            interruptible: false,
        };
        loop {
            if let Ok(result) = self.wait(limit, &mut ready) {
                return result;
            }
        }
    }

    /// As [`wait`](Self::wait), of the one future that polls this. A thread may not wait as well.
    pub(super) fn poll<R>(
        &self,
        context: &mut Context<'_>,
        ready: impl FnOnce(&mut S) -> Option<R>,
    ) -> Poll<R> {
        // Cloned and dropped outside of the lock: wakers are user code.
        let mut waiting = Watchers::default();
        waiting.add(Watcher::Waker(context.waker().clone()));
        let mut guard = self.lock();
        if let Some(result) = ready(&mut guard.state) {
            return Poll::Ready(result);
        }
        mem::swap(&mut guard.waiting, &mut waiting);
        drop(guard);
        Poll::Pending
    }
}
