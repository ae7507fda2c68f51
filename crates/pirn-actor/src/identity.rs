//! Who an actor is, and who the running thread works for.

use crate::time::Limit;
use core::cell::{Cell, RefCell};
use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};
use std::sync::Arc;

/// The identity of an actor: a number that no other actor of the process has, and perhaps a name.
#[derive(Clone)]
pub(crate) struct Identity {
    number: u64,
    name: Option<Arc<str>>,
}

impl Identity {
    pub(crate) fn new(name: Option<Arc<str>>) -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Identity {
            // Relaxed: numbers only have to differ.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            name,
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the name. That of an actor without one is made of its number.
    pub(crate) fn name(&self) -> Arc<str> {
        match &self.name {
            Some(name) => Arc::clone(name),
            None => format!("actor-{}", self.number).into(),
        }
    }
}

impl PartialEq for Identity {
    fn eq(&self, other: &Identity) -> bool {
        self.number == other.number
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

thread_local! {
    static WORKS_FOR: RefCell<Option<Identity>> = const { RefCell::new(None) };
    static LIMIT: Cell<Limit> = const { Cell::new(Limit::NEVER) };
}

/// Says that the running thread works for an actor, for as long as this exists.
pub(crate) struct Works(Option<Identity>);

impl Works {
    pub(crate) fn for_actor(identity: &Identity) -> Works {
        Works(WORKS_FOR.replace(Some(identity.clone())))
    }
}

impl Drop for Works {
    fn drop(&mut self) {
        WORKS_FOR.set(self.0.take());
    }
}

/// Returns the actor that the running thread works for. Threads that it has forked do not: they
/// wait for themselves.
pub(crate) fn works_for() -> Option<Identity> {
    WORKS_FOR.with_borrow(Clone::clone)
}

/// Sets the time until which the running thread's asks may take, for as long as this exists.
pub(crate) struct Within(Limit);

impl Within {
    pub(crate) fn limit(limit: Limit) -> Within {
        Within(LIMIT.replace(limit))
    }
}

impl Drop for Within {
    fn drop(&mut self) {
        LIMIT.set(self.0);
    }
}

/// Returns the time until which the running thread's asks may take.
pub(crate) fn current_limit() -> Limit {
    LIMIT.get()
}
