//! A value that tells of its changes.
//!
//! Changes are queued under the lock of what changes, and told without it: by the thread whose
//! change comes into an idle feed, with all that are queued meanwhile. So subscribers learn of all
//! changes, in order, and each begins where the one before has ended.
//!
//! ```text
//!   set:  lock; change; queue; unlock;  then, unless a thread is telling:  tell all that is queued
//! ```

use crate::wait::{Late, Line, locked, wait};
use core::fmt;
use core::time::Duration;
use pirn::thread::Interrupted;
use pirn_actor::address::Recipient;
use pirn_actor::topic::{Subscription, Topic};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Instant;

/// A value that threads share, wait for, and are told the changes of.
///
/// Clones are the same value. Subscribers are told all changes, in order: the old value of each is
/// the new value of the one before. (One that is full misses some, as with a
/// [`Topic`](Topic).)
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_flow::watched::{Change, Watched};
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
    changes: Feed<Change<T>>,
}

/// The value is behind an `Arc`, so that it is cloned, compared and dropped without the lock.
struct State<T> {
    value: Arc<T>,
    /// Counts the changes.
    version: u64,
    /// Threads that wait for one.
    line: Line,
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
                line: Line::default(),
            }),
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
    /// let owner = pirn_flow::watched::Watched::new(None);
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
            state.line.wake(usize::MAX);
            self.0.changes.queue(change);
        }
        self.0.changes.tell();
        true
    }

    /// Has an actor, or another receiver, sent each change. See
    /// [`Topic::subscribe`](Topic::subscribe).
    pub fn subscribe(&self, subscriber: &impl Recipient<Change<T>>) -> Subscription {
        self.0.changes.topic.subscribe(subscriber)
    }

    /// Has a function called with each change, by an actor of its own. See
    /// [`Topic::subscribe_with`](Topic::subscribe_with).
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
    /// let ready = pirn_flow::watched::Watched::new(0);
    /// let counts = ready.clone();
    /// pirn::thread::spawn(move || (0..5).for_each(|_| drop(counts.update(|n| n + 1))));
    /// assert_eq!(ready.wait_until(|n| *n == 5).unwrap(), 5);
    /// ```
    pub fn wait_until(&self, wanted: impl FnMut(&T) -> bool) -> Result<T, Interrupted> {
        let found = self.wait(None, wanted)?;
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
        self.wait(Instant::now().checked_add(timeout), wanted)
    }

    fn wait(
        &self,
        until: Option<Instant>,
        mut wanted: impl FnMut(&T) -> bool,
    ) -> Result<Option<T>, Interrupted> {
        loop {
            // Not under the lock: `wanted` is the program's.
            let (value, version) = self.load();
            if wanted(&value) {
                return Ok(Some(T::clone(&value)));
            }
            let changed = |state: &mut State<T>| (state.version != version).then_some(());
            match wait(&self.0.state, |state| &mut state.line, until, changed) {
                Ok(()) => {}
                Err(Late::TimedOut) => return Ok(None),
                Err(Late::Interrupted) => return Err(Interrupted),
            }
        }
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

/// Changes on their way to the subscribers.
struct Feed<C: 'static> {
    topic: Topic<C>,
    queue: Mutex<Queue<C>>,
}

struct Queue<C> {
    changes: VecDeque<C>,
    is_telling: bool,
}

impl<C: Clone + Send + 'static> Feed<C> {
    fn new() -> Feed<C> {
        Feed {
            topic: Topic::new(),
            queue: Mutex::new(Queue {
                changes: VecDeque::new(),
                is_telling: false,
            }),
        }
    }

    /// Queues a change. Called under the lock of what changes.
    fn queue(&self, change: C) {
        locked(&self.queue).changes.push_back(change);
    }

    /// Tells what is queued, unless another thread does. Called without a lock.
    fn tell(&self) {
        {
            let mut queue = locked(&self.queue);
            if queue.is_telling {
                return;
            }
            queue.is_telling = true;
        }
        let telling = Telling(&self.queue);
        while let Some(change) = telling.next() {
            self.topic.publish(change);
        }
        core::mem::forget(telling);
    }
}

/// This thread tells. A panic of the program's, in a `clone`, ends that.
struct Telling<'a, C>(&'a Mutex<Queue<C>>);

impl<C> Telling<'_, C> {
    /// Returns the next change. If there is none, the next one is told by another thread.
    fn next(&self) -> Option<C> {
        let mut queue = locked(self.0);
        let change = queue.changes.pop_front();
        queue.is_telling = change.is_some();
        change
    }
}

impl<C> Drop for Telling<'_, C> {
    fn drop(&mut self) {
        locked(self.0).is_telling = false;
    }
}
