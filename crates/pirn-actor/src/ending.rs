//! The two events in the life of an actor, ready and ended: threads wait for them, watchers are
//! called.

use crate::actor::Receive;
use crate::error::Exit;
use crate::life::Actor;
use crate::mailbox::Patience;
use crate::poison::{locked, wait_while};
use crate::time::Limit;
use pirn::thread::Panic;
use std::collections::BTreeMap;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Instant;

pub(crate) type Watcher = Box<dyn FnOnce(&Exit) + Send>;

pub(crate) struct Ending {
    state: Mutex<State>,
    changed: Condvar,
}

struct State {
    /// The number of times that the recipe has made a state.
    built: u32,
    /// The number of threads that wait.
    waiting: u32,
    /// Allocated at first use: there may be a million idle actors.
    known: Option<Box<Known>>,
}

/// The exit of an actor, and the watchers of its end.
#[derive(Default)]
struct Known {
    exit: Option<Exit>,
    /// In the order in which they were added.
    watchers: BTreeMap<u64, Watcher>,
    /// The number of watchers added so far.
    watched: u64,
    /// The watches that this actor has on others, while it lives.
    watching: Vec<Watching>,
}

impl State {
    fn known(&mut self) -> &mut Known {
        self.known.get_or_insert_default()
    }

    fn exit(&self) -> Option<&Exit> {
        self.known.as_deref()?.exit.as_ref()
    }
}

impl Ending {
    pub(crate) const fn new() -> Ending {
        Ending {
            state: Mutex::new(State {
                built: 0,
                waiting: 0,
                known: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// Notes that the recipe has made a state.
    pub(crate) fn built(&self) {
        let mut state = locked(&self.state);
        state.built += 1;
        self.tell(state);
    }

    /// Wakes the threads that wait, if there are any.
    fn tell(&self, state: MutexGuard<'_, State>) {
        let waits = state.waiting > 0;
        drop(state);
        if waits {
            self.changed.notify_all();
        }
    }

    /// Publishes the end of the actor: wakes the threads that wait, and calls the watchers.
    pub(crate) fn publish(&self, exit: &Exit) {
        self.stop_watching();
        let watchers = {
            let mut state = locked(&self.state);
            let known = state.known();
            known.exit = Some(exit.clone());
            let watchers = core::mem::take(&mut known.watchers);
            self.tell(state);
            watchers
        };
        for watcher in watchers.into_values() {
            // The panic hook has reported a watcher's panic, which must not keep the others from
            // being called.
            let _ = Panic::catch(|| watcher(exit));
        }
    }

    /// Publishes the end if there is no watcher, and `ends` returns that the actor has ended.
    /// Returns true if so. No watcher is added meanwhile.
    pub(crate) fn publish_unwatched(&self, exit: Exit, ends: impl FnOnce() -> bool) -> bool {
        let mut state = locked(&self.state);
        let is_watched = |known: &Known| !known.watchers.is_empty();
        if state.known.as_deref().is_some_and(is_watched) || !ends() {
            return false;
        }
        state.known().exit = Some(exit);
        self.tell(state);
        true
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        locked(&self.state).exit().cloned()
    }

    /// Sets a function to be called when the actor ends: at once if it has ended. Returns the
    /// watcher's number.
    pub(crate) fn watch(&self, watcher: Watcher) -> u64 {
        let mut state = locked(&self.state);
        let known = state.known();
        known.watched += 1;
        let number = known.watched;
        match known.exit.clone() {
            None => drop(known.watchers.insert(number, watcher)),
            Some(exit) => {
                drop(state);
                watcher(&exit);
            }
        }
        number
    }

    /// Drops the watcher with this number, if it has not been called.
    pub(crate) fn unwatch(&self, number: u64) {
        let mut state = locked(&self.state);
        let known = state.known.as_deref_mut();
        let watcher = known.and_then(|known| known.watchers.remove(&number));
        drop(state); // The watcher's destructor is the program's code.
        drop(watcher);
    }

    /// Keeps a watch of this actor on another one for as long as this actor lives, or until
    /// [`stop_watching`](Ending::stop_watching).
    pub(crate) fn keep(&self, watching: Watching) {
        // Taken out meanwhile, since `is_over` takes the locks of other actors.
        let mut all = core::mem::take(&mut locked(&self.state).known().watching);
        if all.len() == all.capacity() {
            all.retain(|one| !one.is_over());
        }
        all.push(watching);
        let mut state = locked(&self.state);
        let kept = &mut state.known().watching;
        core::mem::swap(kept, &mut all);
        kept.append(&mut all); // of other threads of the handler, meanwhile
    }

    /// Sends `own`, the actor of this `Ending`, an urgent message, made by `make`, when `other`
    /// ends.
    pub(crate) fn watch_for<A, M, R>(
        &self,
        own: &Arc<A>,
        other: &(dyn Actor + 'static),
        make: impl FnOnce(Exit) -> M + Send + 'static,
    ) where
        A: Receive<M, R> + 'static,
    {
        let own = Arc::downgrade(own);
        let told = move |exit: &Exit| {
            if let Some(own) = own.upgrade() {
                // A closing actor does not need the message.
                let _ = own.tell(make(exit.clone()), Patience::Urgent);
            }
        };
        self.keep(Watching::begin(&other.this(), Box::new(told)));
    }

    /// Drops all watches of this actor on others.
    pub(crate) fn stop_watching(&self) {
        let mut state = locked(&self.state);
        let known = state.known.as_deref_mut();
        let all = known.map(|known| core::mem::take(&mut known.watching));
        drop(state); // The drop takes the locks of other actors.
        drop(all);
    }

    /// Returns the number of watchers that have not been called.
    pub(crate) fn watchers(&self) -> usize {
        let state = locked(&self.state);
        let known = state.known.as_deref();
        known.map_or(0, |known| known.watchers.len())
    }

    /// Waits for the end.
    pub(crate) fn join(&self, limit: Limit) -> Option<Exit> {
        self.wait(limit, |state| state.exit().is_some())
    }

    /// Waits until the recipe has made a state `count` times. Fails if the actor has ended.
    pub(crate) fn wait_built(&self, count: u32) -> Result<(), Exit> {
        let is_over = |state: &State| state.exit().is_some() || state.built >= count;
        self.wait(Limit::NEVER, is_over).map_or(Ok(()), Err)
    }

    /// Waits until `is_over` returns true, or the time is over. Returns the exit if the actor has
    /// ended.
    fn wait(&self, limit: Limit, is_over: impl Fn(&State) -> bool) -> Option<Exit> {
        let mut state = locked(&self.state);
        state.waiting += 1;
        let waits = |state: &mut State| !is_over(state);
        state = match limit.instant() {
            None => wait_while(&self.changed, state, waits),
            Some(at) => {
                let left = at.saturating_duration_since(Instant::now());
                let waited = self.changed.wait_timeout_while(state, left, waits);
                waited.unwrap_or_else(PoisonError::into_inner).0
            }
        };
        state.waiting -= 1;
        state.exit().cloned()
    }
}

/// A watcher that is dropped with this, unless it has been called.
pub(crate) struct Watching {
    watched: Weak<dyn Actor>,
    number: u64,
}

impl Watching {
    /// Sets a function to be called at an end, unless this is dropped before.
    pub(crate) fn begin(watched: &Arc<dyn Actor>, watcher: Watcher) -> Watching {
        Watching {
            number: watched.life().ending.watch(watcher),
            watched: Arc::downgrade(watched),
        }
    }

    /// Returns true if the function has been called, or is about to be.
    fn is_over(&self) -> bool {
        let watched = self.watched.upgrade();
        watched.is_none_or(|watched| watched.exit().is_some())
    }
}

impl Drop for Watching {
    fn drop(&mut self) {
        if let Some(watched) = self.watched.upgrade() {
            watched.life().ending.unwatch(self.number);
            watched.unwatched();
        }
    }
}
