//! Waiting for a change of some shared state, on either kind of thread, with a limit of time and an
//! ear for interrupts.
//!
//! A `Condvar` hears no interrupts on platform threads. So this is a list of those who wait, and
//! parking: an interrupt gives a permit on both kinds. Permits may be left over and end a later
//! `park` early, as any `park` may end.

use crate::thread::{self, Thread, ThreadId};
use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

/// How long to wait, and whether an interrupt ends it.
#[derive(Clone, Copy)]
pub(super) struct Patience {
    /// None: for ever.
    deadline: Option<Instant>,
    interruptible: bool,
}

/// Why a wait came to its end before what was waited for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    TimedOut,
    Interrupted,
}

impl Patience {
    pub(super) const UNTIL_INTERRUPTED: Patience = Patience {
        deadline: None,
        interruptible: true,
    };

    /// From now on. A timeout of centuries is none.
    pub(super) fn timeout(timeout: Duration) -> Patience {
        Patience {
            deadline: Instant::now().checked_add(timeout),
            interruptible: false,
        }
    }

    pub(super) fn interruptible(self) -> Patience {
        Patience {
            interruptible: true,
            ..self
        }
    }

    /// Parks once.
    fn park(self) -> Result<(), Ended> {
        if self.interruptible && thread::is_interrupted() {
            return Err(Ended::Interrupted);
        }
        match self.deadline {
            None => thread::park(),
            Some(deadline) => match deadline.saturating_duration_since(Instant::now()) {
                Duration::ZERO => return Err(Ended::TimedOut),
                left => thread::park_timeout(left),
            },
        }
        Ok(())
    }
}

/// Some state, and those who wait for it to change.
pub(super) struct Monitor<S>(Mutex<Guarded<S>>);

struct Guarded<S> {
    state: S,
    waiting: Waiting,
}

/// Mostly there is one, and no need to allocate for it.
#[derive(Default)]
struct Waiting {
    first: Option<Waiter>,
    others: Vec<Waiter>,
}

enum Waiter {
    Thread(Thread),
    Waker(Waker),
}

impl Waiter {
    fn wake(self) {
        match self {
            Waiter::Thread(thread) => thread.unpark(),
            Waiter::Waker(waker) => waker.wake(),
        }
    }

    fn is(&self, id: ThreadId) -> bool {
        matches!(self, Waiter::Thread(thread) if thread.id() == id)
    }
}

impl Waiting {
    fn add(&mut self, waiter: Waiter) {
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

impl<S> Monitor<S> {
    pub(super) fn new(state: S) -> Monitor<S> {
        Monitor(Mutex::new(Guarded {
            state,
            waiting: Waiting::default(),
        }))
    }

    /// Nothing that could panic half-way runs under the lock, so that a poisoned state is as good
    /// as any.
    fn lock(&self) -> MutexGuard<'_, Guarded<S>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at the state, or changes it in a way that nobody waits for. `f` must not run code of
    /// the user's.
    pub(super) fn with<R>(&self, f: impl FnOnce(&mut S) -> R) -> R {
        f(&mut self.lock().state)
    }

    /// Changes the state, and wakes all that wait. `f` must not run code of the user's.
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
        patience: Patience,
        mut ready: impl FnMut(&mut S) -> Option<R>,
    ) -> Result<R, Ended> {
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
                guard.waiting.add(Waiter::Thread(thread));
            }
            drop(guard);
            ended = patience.park().err();
        }
    }

    /// As [`wait`](Self::wait), for as long as it takes.
    pub(super) fn wait_forever<R>(&self, mut ready: impl FnMut(&mut S) -> Option<R>) -> R {
        let patience = Patience {
            deadline: None,
            interruptible: false,
        };
        loop {
            if let Ok(result) = self.wait(patience, &mut ready) {
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
        // Cloned and dropped outside of the lock: wakers are code of the user's.
        let mut waiting = Waiting::default();
        waiting.add(Waiter::Waker(context.waker().clone()));
        let mut guard = self.lock();
        if let Some(result) = ready(&mut guard.state) {
            return Poll::Ready(result);
        }
        mem::swap(&mut guard.waiting, &mut waiting);
        drop(guard);
        Poll::Pending
    }
}
