//! The two events in the life of an actor, ready and ended: threads that wait for them, functions
//! that are told.

use crate::actor::Receive;
use crate::error::Exit;
use crate::life::Actor;
use crate::mailbox::Patience;
use crate::poison::locked;
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
    /// Made when it is needed: there may be a million idle actors.
    known: Option<Box<Known>>,
}

/// The end, and who is to know of it.
#[derive(Default)]
struct Known {
    exit: Option<Exit>,
    /// In the order in which they came.
    watchers: BTreeMap<u64, Watcher>,
    /// The number of watchers that there have been.
    watched: u64,
    /// The ends that this actor watches itself, as long as it lives.
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

    /// The actor has its state.
    pub(crate) fn built(&self) {
        let mut state = locked(&self.state);
        state.built += 1;
        self.tell(state);
    }

    /// Wakes those who wait, if there are any.
    fn tell(&self, state: MutexGuard<'_, State>) {
        let waits = state.waiting > 0;
        drop(state);
        if waits {
            self.changed.notify_all();
        }
    }

    /// The actor has ended.
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
            // Its panic has been reported by the hook, and must not keep others from being told.
            let _ = Panic::catch(|| watcher(exit));
        }
    }

    /// Does the same if nobody is to be called, and `ends` says that the actor has ended. Returns
    /// true if so. Nobody is added meanwhile.
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

    /// Has a function called when the actor ends: at once, if it has ended. Returns the watcher's
    /// number.
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
        drop(state); // The watcher's destructor is the program's.
        drop(watcher);
    }

    /// Has this actor watch another one for as long as it lives, or until
    /// [`stop_watching`](Ending::stop_watching). Called on the actor's own thread.
    pub(crate) fn keep(&self, watching: Watching) {
        // Taken out meanwhile, since `is_over` takes the locks of the others.
        let mut all = core::mem::take(&mut locked(&self.state).known().watching);
        if all.len() == all.capacity() {
            all.retain(|one| !one.is_over());
        }
        all.push(watching);
        locked(&self.state).known().watching = all;
    }

    /// Has the end of `other` come to `own`, the actor that this is of, as an urgent message, which
    /// `make` makes.
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
                // One that is closing needs it no more.
                let _ = own.tell(make(exit.clone()), Patience::Urgent);
            }
        };
        self.keep(Watching::begin(&other.this(), Box::new(told)));
    }

    /// Has this actor watch no other one any more.
    pub(crate) fn stop_watching(&self) {
        let mut state = locked(&self.state);
        let known = state.known.as_deref_mut();
        let all = known.map(|known| core::mem::take(&mut known.watching));
        drop(state); // The drop takes the locks of the others.
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
        self.wait(limit, |state| state.exit().is_some()).0
    }

    /// Waits until the recipe has made a state `count` times, or the actor has ended. Returns false
    /// and the exit if it has.
    pub(crate) fn wait_built(&self, count: u32, limit: Limit) -> (Option<Exit>, bool) {
        self.wait(limit, |state| {
            state.exit().is_some() || state.built >= count
        })
    }

    /// Waits until `is_over` holds. Returns the exit, and whether it held in time.
    fn wait(&self, limit: Limit, is_over: impl Fn(&State) -> bool) -> (Option<Exit>, bool) {
        let mut state = locked(&self.state);
        while !is_over(&state) {
            let left = limit
                .instant()
                .map(|at| at.saturating_duration_since(Instant::now()));
            if left.is_some_and(|left| left.is_zero()) {
                return (state.exit().cloned(), false);
            }
            state.waiting += 1;
            state = match left {
                None => {
                    let waited = self.changed.wait(state);
                    waited.unwrap_or_else(PoisonError::into_inner)
                }
                Some(left) => {
                    let waited = self.changed.wait_timeout(state, left);
                    waited.unwrap_or_else(PoisonError::into_inner).0
                }
            };
            state.waiting -= 1;
        }
        (state.exit().cloned(), true)
    }
}

/// A watcher that is dropped with this, if it has not been called.
pub(crate) struct Watching {
    watched: Weak<dyn Actor>,
    number: u64,
}

impl Watching {
    /// Has a function called at an end, unless this is dropped before.
    pub(crate) fn begin(watched: &Arc<dyn Actor>, watcher: Watcher) -> Watching {
        Watching {
            number: watched.life().ending.watch(watcher),
            watched: Arc::downgrade(watched),
        }
    }

    /// Returns true if the function has been called, or will be at once.
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
