//! Waiting for a change of shared state, on either kind of thread, with a time limit and optionally
//! until an interrupt.
//!
//! An interrupt does not end a wait on a `Condvar` on a platform thread. So this uses a list of
//! waiting threads, and parking: an interrupt grants a park permit on both kinds. Permits may be
//! left over and end a later `park` early, as any `park` may end.

use crate::thread::{self, Thread, ThreadId};
use pirn_rt::poison::locked;
use std::mem;
use std::sync::{Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long to wait, and whether an interrupt ends it.
#[derive(Clone, Copy)]
pub(super) struct WaitLimit {
    /// `None` waits for ever.
    deadline: Option<Instant>,
    interruptible: bool,
}

/// The reason for which a wait ended before its condition held.
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

    /// Returns a limit that counts from now. A timeout that overflows is no limit.
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

/// A state, and the threads and tasks that wait for it to change.
pub(super) struct Watched<S>(Mutex<Guarded<S>>);

struct Guarded<S> {
    state: S,
    waiting: Watchers,
}

/// Usually there is one watcher, which needs no allocation.
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

    /// Reads the state, or changes it in a way that no watcher waits for. `f` must not run user
    /// code.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        f(&mut self.lock().state)
    }

    /// Changes the state and wakes all watchers. `f` must not run user code.
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

    /// Waits until `ready` returns a value.
    ///
    /// A value that is ready at once is returned even if the time is up or the thread has been
    /// interrupted.
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

    /// Waits as [`wait`](Self::wait) does, without a limit.
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

    /// Polls as [`wait`](Self::wait) waits, for one future. No thread may wait at the same time.
    pub(super) fn poll<R>(
        &self,
        context: &mut Context<'_>,
        ready: impl FnOnce(&mut S) -> Option<R>,
    ) -> Poll<R> {
        // Clone and drop wakers outside the lock: they are user code.
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
