//! Who an actor is, and who the running thread works for.

use crate::time::Limit;
use core::cell::Cell;
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
    // A pointer, because a value with a destructor would be registered, by allocation and under a
    // lock of libc, on each new thread.
    static WORKS_FOR: Cell<*const Identity> = const { Cell::new(core::ptr::null()) };
    static LIMIT: Cell<Limit> = const { Cell::new(Limit::NEVER) };
}

/// Calls `f` while the running thread works for an actor.
pub(crate) fn while_working_for<R>(identity: &Identity, f: impl FnOnce() -> R) -> R {
    /// Sets what was before, also after a panic.
    struct Before(*const Identity);
    impl Drop for Before {
        fn drop(&mut self) {
            WORKS_FOR.set(self.0);
        }
    }
    let _before = Before(WORKS_FOR.replace(identity));
    f()
}

/// Returns the actor that the running thread works for. Threads that it has forked do not: they
/// wait for themselves.
pub(crate) fn works_for() -> Option<Identity> {
    let identity = WORKS_FOR.get();
    // SAFETY: it is null, or of a call of `while_working_for` on this thread, which is not over: it
    // sets what was before when it ends. So the identity is borrowed now.
    unsafe { identity.as_ref() }.cloned()
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
