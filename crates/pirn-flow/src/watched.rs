//! Watched values: threads wait for their changes, and subscribers get them.
//!
//! A change is queued under the lock of the value, and published without it: by the thread that
//! finds no other thread publishing, together with all changes that are queued meanwhile. So
//! subscribers get all changes, in order, and the old value of each is the new value of the one
//! before.
//!
//! ```text
//!   set:  lock; change; queue; unlock;  then, unless another thread publishes:  publish the queue
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

/// A value that threads share and wait for, and whose changes subscribers get.
///
/// Clones are the same value. Subscribers get all changes, in order: the old value of each is the
/// new value of the one before. (A subscriber without room misses some, as with a
/// [`Topic`].)
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

/// The value is in an `Arc`, so that it is cloned, compared and dropped without the lock.
struct State<T> {
    value: Arc<T>,
    /// The number of changes.
    version: u64,
    /// Threads that wait for a change.
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
    /// Makes a watched value.
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

    /// Sets the value, and returns the one before. This is a change even if both are equal.
    pub fn set(&self, value: T) -> T {
        let new = Arc::new(value);
        loop {
            let (old, version) = self.load();
            if self.exchange(&old, version, &new) {
                return T::clone(&old);
            }
        }
    }

    /// Sets the value to `f` of the present one, and returns it. `f` is called again if another
    /// thread has changed the value meanwhile.
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
    /// Returns the present value if it is not `expected`.
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

    /// Sets the value if it was not changed since it was loaded.
    fn exchange(&self, old: &Arc<T>, version: u64, new: &Arc<T>) -> bool {
        // Made without the lock: `clone` is the program's code.
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
            state.value = Arc::clone(new); // the caller owns the old one, too, and drops it
            state.line.wake(usize::MAX);
            self.0.changes.queue(change);
        }
        self.0.changes.tell();
        true
    }

    /// Sends each change to an actor, or another receiver. See
    /// [`Topic::subscribe`].
    pub fn subscribe(&self, subscriber: &impl Recipient<Change<T>>) -> Subscription {
        self.0.changes.topic.subscribe(subscriber)
    }

    /// Calls a function with each change, on an actor of its own. See
    /// [`Topic::subscribe_with`].
    pub fn subscribe_with(&self, f: impl Fn(Change<T>) + Send + Sync + 'static) -> Subscription {
        self.0.changes.topic.subscribe_with(f)
    }

    /// Waits until `wanted` returns true for the value, and returns the value. Values that are
    /// changed again at once may be skipped.
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

    /// Does what [`wait_until`](Watched::wait_until) does, for as long as `timeout`.
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
            // Without the lock: `wanted` is the program's code.
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

/// The queue of changes on their way to the subscribers.
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

    /// Queues a change. Called with the lock of the value held.
    fn queue(&self, change: C) {
        locked(&self.queue).changes.push_back(change);
    }

    /// Publishes the queued changes, unless another thread does. Called without a lock.
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

/// The running thread publishes while this exists. A panic of the program's `clone` drops it.
struct Telling<'a, C>(&'a Mutex<Queue<C>>);

impl<C> Telling<'_, C> {
    /// Returns the next change. Without one, lets another thread publish the next.
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
