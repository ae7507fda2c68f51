//! The two events in the life of an actor, ready and ended: threads that wait for them, functions
//! that are told.

use crate::error::Exit;
use crate::poison::locked;
use crate::time::Limit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Condvar, Mutex, PoisonError};
use std::time::Instant;

type Watcher = Box<dyn FnOnce(&Exit) + Send>;

pub(crate) struct Ending {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    exit: Option<Exit>,
    /// The number of times that the recipe has made a state.
    built: u32,
    watchers: Vec<Watcher>,
}

impl Ending {
    pub(crate) fn new() -> Ending {
        Ending {
            state: Mutex::default(),
            changed: Condvar::new(),
        }
    }

    /// The actor has its state.
    pub(crate) fn built(&self) {
        locked(&self.state).built += 1;
        self.changed.notify_all();
    }

    /// The actor has ended.
    pub(crate) fn publish(&self, exit: &Exit) {
        let watchers = {
            let mut state = locked(&self.state);
            state.exit = Some(exit.clone());
            core::mem::take(&mut state.watchers)
        };
        self.changed.notify_all();
        for watcher in watchers {
            // It may be the program's, and panic. The hook has reported that, and others wait.
            let _ = catch_unwind(AssertUnwindSafe(|| watcher(exit)));
        }
    }

    pub(crate) fn exit(&self) -> Option<Exit> {
        locked(&self.state).exit.clone()
    }

    /// Has a function called when the actor ends: at once, if it has ended.
    pub(crate) fn watch(&self, watcher: Watcher) {
        let mut state = locked(&self.state);
        match state.exit.clone() {
            None => state.watchers.push(watcher),
            Some(exit) => {
                drop(state);
                watcher(&exit);
            }
        }
    }

    /// Waits for the end.
    pub(crate) fn join(&self, limit: Limit) -> Option<Exit> {
        self.wait(limit, |state| state.exit.is_some()).0
    }

    /// Waits until the recipe has made a state `count` times, or the actor has ended. Returns false
    /// and the exit if it has.
    pub(crate) fn wait_built(&self, count: u32, limit: Limit) -> (Option<Exit>, bool) {
        self.wait(limit, |state| state.exit.is_some() || state.built >= count)
    }

    /// Waits until `is_over` holds. Returns the exit, and whether it held in time.
    fn wait(&self, limit: Limit, is_over: impl Fn(&State) -> bool) -> (Option<Exit>, bool) {
        let mut state = locked(&self.state);
        while !is_over(&state) {
            let waited = match limit.instant() {
                None => self.changed.wait(state),
                Some(at) => {
                    let left = at.saturating_duration_since(Instant::now());
                    if left.is_zero() {
                        return (state.exit.clone(), false);
                    }
                    match self.changed.wait_timeout(state, left) {
                        Ok((state, _)) => Ok(state),
                        Err(poisoned) => Ok(poisoned.into_inner().0),
                    }
                }
            };
            state = waited.unwrap_or_else(PoisonError::into_inner);
        }
        (state.exit.clone(), true)
    }
}
