//! A map that tells of its changes.

use super::Subscription;
use super::feed::Feed;
use super::waiters::Waiters;
use crate::actor::Recipient;
use crate::poison::locked;
use crate::time::Limit;
use core::fmt;
use core::hash::Hash;
use core::time::Duration;
use pirn::thread::Interrupted;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// A map that threads share, wait for, and are told the changes of.
///
/// Clones are the same map. Subscribers are told all changes, in order. Keys are hashed, compared
/// and cloned under the map's lock: that must be short, and must not use the map.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, MapChange, WatchedMap};
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let log = actor::consumer(move |change: MapChange<&str, u32>| tell.send(change).unwrap());
/// let ports = WatchedMap::new();
/// ports.subscribe(&log).detach();
/// ports.insert("http", 80);
/// ports.insert("http", 8080);
/// ports.remove(&"http");
/// let olds_and_news = told.iter().take(3).map(|change| (change.old, change.new));
/// assert!(olds_and_news.eq([(None, Some(80)), (Some(80), Some(8080)), (Some(8080), None)]));
/// ```
pub struct WatchedMap<K: 'static, V: 'static>(Arc<Shared<K, V>>);

struct Shared<K: 'static, V: 'static> {
    /// Values are behind `Arc`s, so that they are cloned, compared and dropped without the lock.
    entries: Mutex<HashMap<K, Arc<V>>>,
    waiters: Waiters,
    changes: Feed<MapChange<K, V>>,
}

/// A change of one entry of a [`WatchedMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MapChange<K, V> {
    /// The entry's key.
    pub key: K,
    /// The value before, if there was one.
    pub old: Option<V>,
    /// The value after, unless the entry was removed.
    pub new: Option<V>,
}

impl<K, V> WatchedMap<K, V>
where
    K: Clone + Eq + Hash + Send + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Makes an empty map.
    #[expect(clippy::new_without_default, reason = "the bounds would be no fewer")]
    pub fn new() -> WatchedMap<K, V> {
        WatchedMap(Arc::new(Shared {
            entries: Mutex::default(),
            waiters: Waiters::default(),
            changes: Feed::new(),
        }))
    }

    fn load(&self, key: &K) -> Option<Arc<V>> {
        locked(&self.0.entries).get(key).cloned()
    }

    /// Returns a value.
    pub fn get(&self, key: &K) -> Option<V> {
        self.load(key).as_deref().cloned()
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        locked(&self.0.entries).len()
    }

    /// Returns true if there are no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns all entries, in no order.
    pub fn entries(&self) -> Vec<(K, V)> {
        let entries: Vec<(K, Arc<V>)> = locked(&self.0.entries)
            .iter()
            .map(|(key, value)| (key.clone(), Arc::clone(value)))
            .collect();
        let own = |(key, value): (K, Arc<V>)| (key, V::clone(&value));
        entries.into_iter().map(own).collect()
    }

    /// Sets a value, and returns the one before.
    pub fn insert(&self, key: K, value: V) -> Option<V> {
        self.change(key, |_| Ok(Some(value.clone())))
            .unwrap_or_else(|()| unreachable!("it is set in any case"))
    }

    /// Removes an entry, and returns its value.
    pub fn remove(&self, key: &K) -> Option<V> {
        let removed = self.change(key.clone(), |old| match old {
            Some(_) => Ok(None),
            None => Err(()),
        });
        removed.unwrap_or(None)
    }

    /// Sets a value, or removes it, if it is `expected`. Absence is `None`.
    ///
    /// # Errors
    /// It is not: the value that it is.
    ///
    /// # Examples
    /// ```
    /// let owners = pirn_actor::WatchedMap::new();
    /// assert_eq!(owners.compare_and_set("lock", None, Some("Alice")), Ok(()));
    /// assert_eq!(owners.compare_and_set("lock", None, Some("Bob")), Err(Some("Alice")));
    /// assert_eq!(owners.compare_and_set("lock", Some(&"Alice"), None), Ok(()));
    /// assert!(owners.is_empty());
    /// ```
    pub fn compare_and_set(
        &self,
        key: K,
        expected: Option<&V>,
        value: Option<V>,
    ) -> Result<(), Option<V>>
    where
        V: PartialEq,
    {
        let changed = self.change(key, |old| match old == expected {
            true => Ok(value.clone()),
            false => Err(old.cloned()),
        });
        changed.map(drop)
    }

    /// Sets a value to what `f` makes of the one that is there, or removes it, and returns the one
    /// before. `f` is called again if another thread has changed the entry meanwhile.
    fn change<E>(
        &self,
        key: K,
        mut f: impl FnMut(Option<&V>) -> Result<Option<V>, E>,
    ) -> Result<Option<V>, E> {
        loop {
            let old = self.load(&key);
            let new = f(old.as_deref())?.map(Arc::new);
            let change = MapChange {
                key: key.clone(),
                old: old.as_deref().cloned(),
                new: new.as_deref().cloned(),
            };
            if self.exchange(&key, old.as_ref(), new, change) {
                return Ok(old.as_deref().cloned());
            }
        }
    }

    /// Sets an entry if it has not changed since it was loaded. The caller has what was loaded, so
    /// no other value is at its address, and nothing is dropped here.
    fn exchange(
        &self,
        key: &K,
        old: Option<&Arc<V>>,
        new: Option<Arc<V>>,
        change: MapChange<K, V>,
    ) -> bool {
        let copy = key.clone();
        {
            let mut entries = locked(&self.0.entries);
            if entries.get(key).map(Arc::as_ptr) != old.map(Arc::as_ptr) {
                return false;
            }
            match new {
                Some(new) => drop(entries.insert(copy, new)),
                None => drop(entries.remove(key)),
            }
            self.0.changes.queue(change);
        }
        self.0.waiters.wake();
        self.0.changes.tell();
        true
    }

    /// Has an actor, or another receiver, sent each change. See
    /// [`Topic::subscribe`](super::Topic::subscribe).
    pub fn subscribe(&self, subscriber: &impl Recipient<MapChange<K, V>>) -> Subscription {
        self.0.changes.topic.subscribe(subscriber)
    }

    /// Has a function called with each change, by an actor of its own. See
    /// [`Topic::subscribe_with`](super::Topic::subscribe_with).
    pub fn subscribe_with(
        &self,
        f: impl Fn(MapChange<K, V>) + Send + Sync + 'static,
    ) -> Subscription {
        self.0.changes.topic.subscribe_with(f)
    }

    /// Waits until there is a value for a key, and returns it.
    ///
    /// # Errors
    /// The running thread was interrupted.
    ///
    /// # Examples
    /// ```
    /// let ports = pirn_actor::WatchedMap::new();
    /// let listens = ports.clone();
    /// pirn::thread::spawn(move || listens.insert("http", 8080));
    /// assert_eq!(ports.wait_for(&"http").unwrap(), 8080);
    /// ```
    pub fn wait_for(&self, key: &K) -> Result<V, Interrupted> {
        let found = self.0.waiters.wait(Limit::NEVER, || self.get(key))?;
        Ok(found.expect("without a time limit it is found"))
    }

    /// Does the same for as long as `timeout`.
    ///
    /// # Errors
    /// The running thread was interrupted.
    pub fn wait_for_timeout(&self, key: &K, timeout: Duration) -> Result<Option<V>, Interrupted> {
        self.0.waiters.wait(Limit::after(timeout), || self.get(key))
    }
}

impl<K, V> Clone for WatchedMap<K, V> {
    fn clone(&self) -> WatchedMap<K, V> {
        WatchedMap(Arc::clone(&self.0))
    }
}

impl<K, V> fmt::Debug for WatchedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WatchedMap")
            .field("len", &locked(&self.0.entries).len())
            .finish_non_exhaustive()
    }
}
