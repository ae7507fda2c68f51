//! A value that tells of its changes.

use super::Subscription;
use super::feed::Feed;
use super::waiters::Waiters;
use crate::actor::Recipient;
use crate::poison::locked;
use crate::time::Limit;
use core::fmt;
use core::time::Duration;
use pirn::thread::Interrupted;
use std::sync::{Arc, Mutex};

/// A value that threads share, wait for, and are told the changes of.
///
/// Clones are the same value. Subscribers are told all changes, in order: the old value of each is
/// the new value of the one before. (One that is full misses some, as with a
/// [`Topic`](super::Topic).)
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Change, Watched};
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let log = actor::consumer(move |change: Change<u32>| tell.send((change.old, change.new)).unwrap());
/// let level = Watched::new(3);
/// level.subscribe(&log).detach();
/// level.set(4);
/// level.update(|level| level + 1);
/// assert_eq!(level.get(), 5);
/// assert_eq!(told.recv().unwrap(), (3, 4));
/// assert_eq!(told.recv().unwrap(), (4, 5));
/// ```
pub struct Watched<T: 'static>(Arc<Shared<T>>);

struct Shared<T: 'static> {
    state: Mutex<State<T>>,
    waiters: Waiters,
    changes: Feed<Change<T>>,
}

/// The value is behind an `Arc`, so that it is cloned, compared and dropped without the lock.
struct State<T> {
    value: Arc<T>,
    /// Counts the changes.
    version: u64,
}

/// A change of a [`Watched`] value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Change<T> {
    /// The value before.
    pub old: T,
    /// The value after.
    pub new: T,
}

impl<T: Clone + Send + Sync + 'static> Watched<T> {
    /// Makes a value that is watched.
    pub fn new(value: T) -> Watched<T> {
        Watched(Arc::new(Shared {
            state: Mutex::new(State {
                value: Arc::new(value),
                version: 0,
            }),
            waiters: Waiters::default(),
            changes: Feed::new(),
        }))
    }

    /// Returns the value.
    pub fn get(&self) -> T {
        T::clone(&self.load().0)
    }

    fn load(&self) -> (Arc<T>, u64) {
        let state = locked(&self.0.state);
        (Arc::clone(&state.value), state.version)
    }

    /// Sets the value, and returns the one before. It is a change even if they are equal.
    pub fn set(&self, value: T) -> T {
        let new = Arc::new(value);
        loop {
            let (old, version) = self.load();
            if self.exchange(&old, version, &new) {
                return T::clone(&old);
            }
        }
    }

    /// Sets the value to one that is made of the present one, and returns it. `f` is called again
    /// if another thread has changed the value meanwhile.
    pub fn update(&self, mut f: impl FnMut(&T) -> T) -> T {
        loop {
            let (old, version) = self.load();
            let new = Arc::new(f(&old));
            if self.exchange(&old, version, &new) {
                return T::clone(&new);
            }
        }
    }

    /// Sets the value if it is `expected`.
    ///
    /// # Errors
    /// It is not: the value that it is.
    ///
    /// # Examples
    /// ```
    /// let owner = pirn_actor::Watched::new(None);
    /// assert_eq!(owner.compare_and_set(&None, Some("Alice")), Ok(()));
    /// assert_eq!(owner.compare_and_set(&None, Some("Bob")), Err(Some("Alice")));
    /// ```
    pub fn compare_and_set(&self, expected: &T, value: T) -> Result<(), T>
    where
        T: PartialEq,
    {
        let new = Arc::new(value);
        loop {
            let (old, version) = self.load();
            if *old != *expected {
                return Err(T::clone(&old));
            }
            if self.exchange(&old, version, &new) {
                return Ok(());
            }
        }
    }

    /// Sets the value if it has not changed since it was loaded.
    fn exchange(&self, old: &Arc<T>, version: u64, new: &Arc<T>) -> bool {
        // Made without the lock: `clone` is the program's.
        let change = Change {
            old: T::clone(old),
            new: T::clone(new),
        };
        {
            let mut state = locked(&self.0.state);
            if state.version != version {
                return false;
            }
            state.version += 1;
            state.value = Arc::clone(new); // the old one is the caller's, too
            self.0.changes.queue(change);
        }
        self.0.waiters.wake();
        self.0.changes.tell();
        true
    }

    /// Has an actor, or another receiver, sent each change. See
    /// [`Topic::subscribe`](super::Topic::subscribe).
    pub fn subscribe(&self, subscriber: &impl Recipient<Change<T>>) -> Subscription {
        self.0.changes.topic.subscribe(subscriber)
    }

    /// Has a function called with each change, by an actor of its own. See
    /// [`Topic::subscribe_with`](super::Topic::subscribe_with).
    pub fn subscribe_with(&self, f: impl Fn(Change<T>) + Send + Sync + 'static) -> Subscription {
        self.0.changes.topic.subscribe_with(f)
    }

    /// Waits until the value is one for which `wanted` returns true, and returns it. A value that
    /// is changed again at once may not be seen.
    ///
    /// # Errors
    /// The running thread was interrupted.
    ///
    /// # Examples
    /// ```
    /// let ready = pirn_actor::Watched::new(0);
    /// let counts = ready.clone();
    /// pirn::thread::spawn(move || (0..5).for_each(|_| drop(counts.update(|n| n + 1))));
    /// assert_eq!(ready.wait_until(|n| *n == 5).unwrap(), 5);
    /// ```
    pub fn wait_until(&self, wanted: impl FnMut(&T) -> bool) -> Result<T, Interrupted> {
        let found = self.wait(Limit::NEVER, wanted)?;
        Ok(found.expect("without a time limit it is found"))
    }

    /// Does the same for as long as `timeout`.
    ///
    /// # Errors
    /// The running thread was interrupted.
    pub fn wait_until_timeout(
        &self,
        timeout: Duration,
        wanted: impl FnMut(&T) -> bool,
    ) -> Result<Option<T>, Interrupted> {
        self.wait(Limit::after(timeout), wanted)
    }

    fn wait(
        &self,
        limit: Limit,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Result<Option<T>, Interrupted> {
        self.0.waiters.wait(limit, || {
            let (value, _) = self.load();
            wanted(&value).then(|| T::clone(&value))
        })
    }
}

impl<T> Clone for Watched<T> {
    fn clone(&self) -> Watched<T> {
        Watched(Arc::clone(&self.0))
    }
}

impl<T: fmt::Debug> fmt::Debug for Watched<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let value = Arc::clone(&locked(&self.0.state).value);
        f.debug_tuple("Watched").field(&value).finish()
    }
}
