//! A value of several parts, which tells when all are there.

use super::{Subscription, Watched};
use crate::actor::{Mode, Recipient};
use core::fmt;
use core::hash::Hash;
use core::time::Duration;
use pirn::thread::Interrupted;
use std::collections::{HashMap, HashSet};
use std::error::Error;
use std::sync::Arc;

/// A value of several named parts, which come one after the other, and from several threads. It
/// tells its subscribers when all are there, and again when one of them changes after that.
///
/// Clones are the same value.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Composite};
/// use std::collections::HashMap;
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let log = actor::consumer(move |trip: HashMap<_, _>| tell.send(trip).unwrap());
/// let trip = Composite::new(["flight", "hotel"]);
/// trip.subscribe(&log).detach();
/// trip.set("flight", 7)?;
/// assert_eq!(trip.get(), None);
/// trip.set("hotel", 9)?;
/// assert_eq!(told.recv().unwrap(), HashMap::from([("flight", 7), ("hotel", 9)]));
/// # Ok::<(), actor::UnknownPart>(())
/// ```
pub struct Composite<K: 'static, V: 'static> {
    names: Arc<HashSet<K>>,
    parts: Watched<HashMap<K, V>>,
}

impl<K, V> Composite<K, V>
where
    K: Clone + Eq + Hash + Send + Sync + 'static,
    V: Clone + Send + Sync + 'static,
{
    /// Makes a value of parts with these names, none of which is there.
    pub fn new(names: impl IntoIterator<Item = K>) -> Composite<K, V> {
        Composite {
            names: Arc::new(names.into_iter().collect()),
            parts: Watched::new(HashMap::new()),
        }
    }

    /// Sets a part. Returns true if all are there now.
    ///
    /// # Errors
    /// There is no part with this name.
    pub fn set(&self, name: K, value: V) -> Result<bool, UnknownPart> {
        if !self.names.contains(&name) {
            return Err(UnknownPart(()));
        }
        let parts = self.parts.update(|parts| {
            let mut parts = parts.clone();
            parts.insert(name.clone(), value.clone());
            parts
        });
        Ok(parts.len() == self.names.len())
    }

    /// Returns all parts, if all are there.
    pub fn get(&self) -> Option<HashMap<K, V>> {
        let parts = self.parts.get();
        (parts.len() == self.names.len()).then_some(parts)
    }

    /// Waits until all parts are there.
    ///
    /// # Errors
    /// The running thread was interrupted.
    pub fn wait(&self) -> Result<HashMap<K, V>, Interrupted> {
        let all = self.names.len();
        self.parts.wait_until(|parts| parts.len() == all)
    }

    /// Does the same for as long as `timeout`.
    ///
    /// # Errors
    /// The running thread was interrupted.
    pub fn wait_timeout(&self, timeout: Duration) -> Result<Option<HashMap<K, V>>, Interrupted> {
        let all = self.names.len();
        self.parts
            .wait_until_timeout(timeout, |parts| parts.len() == all)
    }

    /// Has an actor, or another receiver, sent all parts when the last one comes, and whenever one
    /// is set after that. If all are there already, the next time is when one is set:
    /// [`get`](Composite::get) tells.
    pub fn subscribe(&self, subscriber: &impl Recipient<HashMap<K, V>>) -> Subscription {
        let target = subscriber.target();
        self.subscribe_with(move |all| drop(target.tell(all, Mode::Wait)))
    }

    /// Has a function called with all parts, in the same way, by an actor of its own.
    pub fn subscribe_with(
        &self,
        f: impl Fn(HashMap<K, V>) + Send + Sync + 'static,
    ) -> Subscription {
        let all = self.names.len();
        self.parts.subscribe_with(move |change| {
            if change.new.len() == all {
                f(change.new);
            }
        })
    }
}

impl<K, V> Clone for Composite<K, V> {
    fn clone(&self) -> Composite<K, V> {
        Composite {
            names: Arc::clone(&self.names),
            parts: self.parts.clone(),
        }
    }
}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for Composite<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Composite")
            .field("names", &self.names)
            .field("parts", &self.parts)
            .finish()
    }
}

/// A [`Composite`] has no part with this name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownPart(());

impl fmt::Display for UnknownPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("there is no part with this name")
    }
}

impl Error for UnknownPart {}
