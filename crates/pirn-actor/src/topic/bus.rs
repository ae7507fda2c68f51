//! A bus: a topic per type.

use super::{Subscription, Topic};
use crate::actor::Recipient;
use crate::poison::locked;
use core::any::{Any, TypeId};
use core::fmt;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// Tells what is published to all who have subscribed to its type.
///
/// Clones are the same bus.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Bus};
///
/// #[derive(Clone)]
/// struct OrderPlaced(u32);
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let ships = actor::consumer(move |OrderPlaced(order)| tell.send(order).unwrap());
/// let bus = Bus::new();
/// bus.subscribe(&ships).detach();
/// assert_eq!(bus.publish(OrderPlaced(7)), 1);
/// assert_eq!(bus.publish("nobody listens to text"), 0);
/// assert_eq!(told.recv().unwrap(), 7);
/// ```
#[derive(Clone, Default)]
pub struct Bus(Arc<Mutex<HashMap<TypeId, Box<dyn Any + Send + Sync>>>>);

impl Bus {
    /// Makes a bus without subscribers.
    pub fn new() -> Bus {
        Bus::default()
    }

    /// Returns the topic for a type. It is made by [`Topic::new`] if there is none.
    pub fn topic<T: Send + 'static>(&self) -> Topic<T> {
        self.find()
            .unwrap_or_else(|| self.topic_or_insert(Topic::new()))
    }

    /// Has a topic be that of its type, and returns true if there was none before. So a type has
    /// another delivery.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor::{Bus, Topic};
    ///
    /// let bus = Bus::new();
    /// assert!(bus.add(Topic::<u32>::inline()));
    /// assert!(!bus.add(Topic::<u32>::per_message()));
    /// ```
    pub fn add<T: Send + 'static>(&self, topic: Topic<T>) -> bool {
        let found = self.topic_or_insert(topic.clone());
        Arc::ptr_eq(&found.0, &topic.0)
    }

    fn topic_or_insert<T: Send + 'static>(&self, topic: Topic<T>) -> Topic<T> {
        let mut topics = locked(&self.0);
        let topic = topics
            .entry(TypeId::of::<T>())
            .or_insert_with(|| Box::new(topic));
        topic.downcast_ref::<Topic<T>>().expect(BY_TYPE).clone()
    }

    fn find<T: Send + 'static>(&self) -> Option<Topic<T>> {
        let topics = locked(&self.0);
        let topic = topics.get(&TypeId::of::<T>())?;
        Some(topic.downcast_ref::<Topic<T>>().expect(BY_TYPE).clone())
    }

    /// Has an actor, or another receiver, sent what is published of this type. See
    /// [`Topic::subscribe`].
    pub fn subscribe<T: Send + 'static>(&self, subscriber: &impl Recipient<T>) -> Subscription {
        self.topic().subscribe(subscriber)
    }

    /// Has a function called with what is published of this type. See [`Topic::subscribe_with`].
    pub fn subscribe_with<T: Send + 'static>(
        &self,
        f: impl Fn(T) + Send + Sync + 'static,
    ) -> Subscription {
        self.topic().subscribe_with(f)
    }

    /// Tells all who have subscribed to this type, and returns to how many the message was handed.
    pub fn publish<T: Clone + Send + 'static>(&self, message: T) -> usize {
        let topic = self.find::<T>();
        topic.map_or(0, |topic| topic.publish(message))
    }
}

const BY_TYPE: &str = "each topic is found by its type";

impl fmt::Debug for Bus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Bus")
            .field("topics", &locked(&self.0).len())
            .finish()
    }
}
