//! The table behind a registry.

use super::early::{Kept, Undelivered};
use super::named::Entrant;
use crate::actor::Address;
use crate::ending::Watching;
use crate::error::Refusal;
use crate::poison::locked;
use crate::time::timers::{self, later};
use core::any::Any;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, Weak};
use std::time::Instant;

pub(super) struct Shared(pub(super) Mutex<State>);

#[derive(Default)]
pub(super) struct State {
    pub(super) names: HashMap<Arc<str>, Entry>,
    /// Counts registrations and messages, which are told apart by it.
    made: u64,
    pub(super) undelivered: Option<Address<Undelivered>>,
}

/// The entry of a name that is not free.
pub(super) enum Entry {
    Expected(VecDeque<Kept>),
    Registered(Holder),
}

pub(super) struct Holder {
    pub(super) number: u64,
    pub(super) actor: Entrant,
    /// The wait for its end, as soon as that has begun.
    pub(super) watching: Option<Watching>,
}

/// Calls `f` after a time, if the registry is still there.
pub(super) fn later_in(
    registry: Weak<Shared>,
    limit: Duration,
    f: impl Fn(&Shared) + Send + 'static,
) -> timers::TimerHandle {
    timers::at(later(Instant::now(), limit), move |_| {
        if let Some(shared) = registry.upgrade() {
            f(&shared);
        }
        None
    })
}

impl Shared {
    /// The time limit of a message is over.
    pub(super) fn expire(&self, name: &str, number: u64) {
        let mut state = locked(&self.0);
        let Some(Entry::Expected(kept)) = state.names.get_mut(name) else {
            return;
        };
        let Some(at) = kept.iter().position(|kept| kept.number == number) else {
            return;
        };
        let expired = kept.remove(at).map(|kept| kept.message.into_any());
        if kept.is_empty() {
            state.names.remove(name);
        }
        let expired = expired.map(|message| (Refusal::TimedOut, message));
        state.hand_out(&name.into(), expired);
    }

    /// The actor of a registration has ended.
    pub(super) fn ended(&self, name: &Arc<str>, number: u64) {
        let mut state = locked(&self.0);
        if state.holder(name, number).is_none() {
            return;
        }
        state.names.remove(name);
    }
}

impl State {
    pub(super) fn next_number(&mut self) -> u64 {
        self.made += 1;
        self.made
    }

    pub(super) fn holder(&mut self, name: &str, number: u64) -> Option<&mut Holder> {
        match self.names.get_mut(name) {
            Some(Entry::Registered(holder)) if holder.number == number => Some(holder),
            _ => None,
        }
    }

    /// Hands messages to the actor that is told of them.
    pub(super) fn hand_out(
        &self,
        name: &Arc<str>,
        left: impl IntoIterator<Item = (Refusal, Box<dyn Any + Send>)>,
    ) {
        for (why, message) in left {
            let name = Arc::clone(name);
            let undelivered = Undelivered { name, why, message };
            if let Some(actor) = &self.undelivered {
                let _ = actor.try_send(undelivered);
            }
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        for (name, entry) in core::mem::take(&mut self.names) {
            if let Entry::Expected(kept) = entry {
                let left = kept.into_iter().map(|kept| {
                    kept.timer.cancel();
                    (Refusal::Closed, kept.message.into_any())
                });
                self.hand_out(&name, left);
            }
        }
    }
}
