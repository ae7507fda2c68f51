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
    /// The number of registrations and messages so far. Each has its own number.
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
    /// The watch of the actor's end, from when it has begun.
    pub(super) watching: Option<Watching>,
}

/// Calls `f` after a time, unless the registry is gone.
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
    /// Called when the time limit of a message passes.
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
        let lost = state.hand_out(&name.into(), expired);
        drop(state);
        drop(lost);
    }

    /// Called when the actor of a registration has ended.
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

    /// Sends messages to the actor that calls the program's `on_undelivered`. Returns those that it
    /// does not get: the caller drops them without the lock, since their destructors are the
    /// program's.
    #[must_use]
    pub(super) fn hand_out(
        &self,
        name: &Arc<str>,
        left: impl IntoIterator<Item = (Refusal, Box<dyn Any + Send>)>,
    ) -> Vec<Undelivered> {
        let send = |(why, message)| {
            let name = Arc::clone(name);
            let undelivered = Undelivered { name, why, message };
            match &self.undelivered {
                Some(actor) => actor.try_send(undelivered).err()?.into_message().into(),
                None => Some(undelivered),
            }
        };
        left.into_iter().filter_map(send).collect()
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
                drop(self.hand_out(&name, left));
            }
        }
    }
}
