//! Identities of actors, and the actor for which the running thread works.

use crate::life::Actor;
use crate::time::Limit;
use core::cell::Cell;
use core::fmt;
use core::hash::{BuildHasherDefault, Hasher};
use core::sync::atomic::{AtomicU64, Ordering};
use pirn::{scope, thread};
use std::collections::HashMap;
use std::sync::Arc;

/// The identity of an actor: a number that no other actor in the program has, and perhaps a name.
#[derive(Clone)]
pub struct Identity {
    number: u64,
    /// One word: there may be a million actors, and most have no name.
    name: Option<Arc<Arc<str>>>,
}

/// The length of the longest name made of a number, in bytes.
const NUMBERED: usize = "actor-18446744073709551615".len();

impl Identity {
    pub(crate) fn new(name: Option<Arc<str>>) -> Identity {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Identity {
            // Relaxed: numbers only have to differ.
            number: NEXT.fetch_add(1, Ordering::Relaxed),
            name: name.map(Arc::new),
        }
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Returns the name. An unnamed actor has one made of its number.
    pub(crate) fn name(&self) -> Arc<str> {
        match &self.name {
            Some(name) => Arc::clone(&**name),
            None => self.shown(&mut [0; NUMBERED]).into(),
        }
    }

    /// Calls `f`. Dumps show meanwhile that the running thread works for this actor.
    pub(crate) fn while_shown<R>(&self, f: impl FnOnce() -> R) -> R {
        thread::annotate(self.shown(&mut [0; NUMBERED]), f)
    }

    /// Returns the name without allocating. Writes a name made of the number into `text`.
    fn shown<'a>(&'a self, text: &'a mut [u8; NUMBERED]) -> &'a str {
        const PREFIX: &[u8] = b"actor-";
        if let Some(name) = &self.name {
            return name;
        }
        let (mut rest, mut start) = (self.number, NUMBERED);
        loop {
            start -= 1;
            text[start] = b'0' + (rest % 10) as u8;
            rest /= 10;
            if rest == 0 {
                break;
            }
        }
        start -= PREFIX.len();
        text[start..][..PREFIX.len()].copy_from_slice(PREFIX);
        // SAFETY: this function has written a prefix and digits, all of them ASCII. A check would
        // take a hundred instructions.
        unsafe { core::str::from_utf8_unchecked(&text[start..]) }
    }
}

/// A map from the numbers of actors.
pub(crate) type ByNumber<T> = HashMap<u64, T, BuildHasherDefault<Spread>>;

pub(crate) const fn empty<T>() -> ByNumber<T> {
    HashMap::with_hasher(BuildHasherDefault::new())
}

/// Hashes numbers that no outsider chooses, so it suffices that all bits depend on them.
#[derive(Default)]
pub(crate) struct Spread(u64);

impl Hasher for Spread {
    fn write_u64(&mut self, number: u64) {
        // The golden ratio spreads consecutive numbers widely. The middle bits depend on most bits
        // of the number, and a table uses the lowest and the highest ones.
        self.0 = number.wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_right(32);
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("numbers are hashed as such");
    }

    fn finish(&self) -> u64 {
        self.0
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
    static WORKS_FOR: Cell<Option<*const dyn Actor>> = const { Cell::new(None) };
}

/// Calls `f` while the running thread works for an actor. Dumps show the actor's name.
pub(crate) fn while_working_for<R>(works: &(dyn Actor + '_), f: impl FnOnce() -> R) -> R {
    /// Restores the previous value, also after a panic.
    struct Before(Option<*const dyn Actor>);
    impl Drop for Before {
        fn drop(&mut self) {
            WORKS_FOR.set(self.0);
        }
    }
    let identity = works.identity();
    let works: *const (dyn Actor + '_) = works;
    // SAFETY: this changes the lifetime only. `current` is the only user of the pointer, and uses
    // it while `works` is borrowed: `Before` restores the previous pointer when this call ends.
    let works: *const (dyn Actor + 'static) = unsafe { core::mem::transmute(works) };
    let _before = Before(WORKS_FOR.replace(Some(works)));
    identity.while_shown(f)
}

/// Calls the handler of a message of the type `M`. Dumps show the type's name meanwhile.
#[inline]
pub(crate) fn while_handling<M, R>(handler: impl FnOnce() -> R) -> R {
    thread::annotate(core::any::type_name::<M>(), handler)
}

/// Calls `f` with the actor for which the running thread works.
fn current<R>(f: impl FnOnce(&dyn Actor) -> R) -> Option<R> {
    // SAFETY: the pointer was set by a call of `while_working_for` on this thread that is not over,
    // since that call restores the previous one when it ends. So its target is borrowed now, and
    // until `f` returns.
    WORKS_FOR.get().map(|works| f(unsafe { &*works }))
}

/// Returns the actor for which the running thread works. Threads that it has forked work for none:
/// their waits are their own.
pub(crate) fn works_for() -> Option<Identity> {
    current(|works| works.identity().clone())
}

/// Returns true if the running thread works for an actor.
pub(crate) fn works() -> bool {
    WORKS_FOR.get().is_some()
}

/// Tells the running thread's actor that the thread is about to wait.
pub(crate) fn about_to_wait() {
    current(|works| works.about_to_wait());
}

/// Returns the time limit of the running thread's asks: the deadline of the request that it
/// handles, or of the enclosing calls and scopes.
#[inline]
pub(crate) fn current_limit() -> Limit {
    scope::deadline().map_or(Limit::NEVER, Limit::at)
}
