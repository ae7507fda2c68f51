//! Topics: a published message goes to all subscribers.
//!
//! | delivery | to an actor | to a function |
//! |---|---|---|
//! | [`Topic::new`] | the publisher sends | an actor of its own calls it |
//! | [`Topic::per_subscriber`] | an actor of its own sends | an actor of its own calls it |
//!
//! A publisher waits for no subscriber: a subscriber without room misses the message, and counts
//! that. [`Topic::patience`] gives each subscriber time.
//!
//! The list of subscribers is copied when it changes, not when a message is published. A publisher
//! goes through the list that it has found, without the lock, and the subscribers' gates keep it
//! from telling those that have left since.

mod subscriber;

pub use subscriber::Subscription;

use crate::actor::{Recipient, Sends, Target, Tell};
use crate::error::{Refusal, SendError};
use crate::mailbox::Patience;
use crate::poison::locked;
use core::fmt;
use core::time::Duration;
use pirn::thread::Panic;
use std::error::Error;
use std::sync::{Arc, Mutex, Weak};
use subscriber::{Deliver, Delivered, Ends, Subscriber};

/// Publishes messages to all its subscribers.
///
/// Clones are the same topic. Messages that one thread publishes reach each subscriber in order. A
/// topic does not keep its subscribers open, and drops those that have ended.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_actor::topic::Topic;
///
/// #[derive(Clone, Debug, PartialEq)]
/// struct Price(u32);
///
/// let (tell, told) = std::sync::mpsc::channel();
/// let ticker = actor::consumer(move |Price(price)| tell.send(price).unwrap());
///
/// let prices = Topic::<Price>::new();
/// let subscription = prices.subscribe(&ticker); // ends when dropped
/// prices.publish(Price(5));
/// assert_eq!(told.recv().unwrap(), 5);
/// # drop(subscription);
/// ```
pub struct Topic<T: 'static>(Arc<Shared<T>>);

struct Shared<T: 'static> {
    /// Each subscriber has an actor of its own that sends to it.
    is_relayed: bool,
    state: Mutex<State<T>>,
}

type List<T> = Arc<Vec<Arc<Subscriber<T>>>>;

struct State<T: 'static> {
    subscribers: List<T>,
    limit: usize,
    patience: Duration,
}

impl<T: Send + 'static> Topic<T> {
    /// Makes a topic that puts messages into the mailboxes of its subscribers.
    #[expect(clippy::new_without_default, reason = "one of two deliveries")]
    pub fn new() -> Topic<T> {
        Topic::delivering(false)
    }

    /// Makes a topic with an actor per subscriber, which waits for room at the subscriber. So a
    /// slow subscriber delays no other one, and misses nothing unless it is more than 1,024
    /// messages behind.
    pub fn per_subscriber() -> Topic<T> {
        Topic::delivering(true)
    }

    fn delivering(is_relayed: bool) -> Topic<T> {
        Topic(Arc::new(Shared {
            is_relayed,
            state: Mutex::new(State {
                subscribers: Arc::default(),
                limit: usize::MAX,
                patience: Duration::ZERO,
            }),
        }))
    }

    /// Sets the number of subscribers that the topic may have.
    pub fn limit(self, subscribers: usize) -> Topic<T> {
        locked(&self.0.state).limit = subscribers;
        self
    }

    /// Sets how long a publisher waits for room at each subscriber before the subscriber misses the
    /// message.
    pub fn patience(self, limit: Duration) -> Topic<T> {
        locked(&self.0.state).patience = limit;
        self
    }

    /// Sends each published message to an actor, or another receiver, until the subscription is
    /// dropped.
    ///
    /// # Panics
    /// If there is a [limit](Topic::limit), and it is reached.
    pub fn subscribe(&self, subscriber: &impl Recipient<T>) -> Subscription {
        self.try_subscribe(subscriber).expect("room for one more")
    }

    /// Calls a function with each published message, on an actor of its own, until the subscription
    /// is dropped. A panic of the function does not end the subscription.
    ///
    /// # Panics
    /// If there is a [limit](Topic::limit), and it is reached.
    pub fn subscribe_with(&self, f: impl Fn(T) + Send + Sync + 'static) -> Subscription {
        self.try_subscribe_with(f).expect("room for one more")
    }

    /// Does what [`subscribe`](Topic::subscribe) does, unless the limit is reached.
    ///
    /// # Errors
    /// The [limit](Topic::limit) is reached.
    ///
    /// # Examples
    /// ```
    /// use pirn_actor as actor;
    /// use pirn_actor::topic::Topic;
    ///
    /// let log = actor::consumer(|_: u32| ());
    /// let numbers = Topic::new().limit(1);
    /// let first = numbers.subscribe(&log);
    /// assert!(numbers.try_subscribe(&log).is_err());
    /// drop(first);
    /// assert!(numbers.try_subscribe(&log).is_ok());
    /// ```
    pub fn try_subscribe(
        &self,
        subscriber: &impl Recipient<T>,
    ) -> Result<Subscription, SubscribeError> {
        let target = subscriber.target();
        let relay = |target: Target<T>| -> Deliver<T> { Box::new(move |m| target.send(m).is_ok()) };
        let relay = self.0.is_relayed.then(|| relay(target.clone()));
        self.0.add(Subscriber::new(&self.0, Some(target), relay))
    }

    /// Does what [`subscribe_with`](Topic::subscribe_with) does, unless the limit is reached.
    ///
    /// # Errors
    /// The [limit](Topic::limit) is reached.
    pub fn try_subscribe_with(
        &self,
        f: impl Fn(T) + Send + Sync + 'static,
    ) -> Result<Subscription, SubscribeError> {
        let call = move |message| {
            // The panic hook has reported a panic of `f`, which concerns neither the publisher nor
            // other subscribers.
            let _ = Panic::catch(|| f(message));
            true
        };
        self.0
            .add(Subscriber::new(&self.0, None, Some(Box::new(call))))
    }

    /// Returns the number of subscribers. Those that have ended do not count.
    pub fn subscribers(&self) -> usize {
        let subscribers = Arc::clone(&locked(&self.0.state).subscribers);
        subscribers.iter().filter(|one| !one.is_over()).count()
    }
}

impl<T: Clone + Send + 'static> Topic<T> {
    /// Publishes a message. Returns the number of subscribers that have got it.
    pub fn publish(&self, message: T) -> usize {
        let (subscribers, patience) = {
            let state = locked(&self.0.state);
            (Arc::clone(&state.subscribers), state.patience)
        };
        self.0.deliver(&subscribers, patience, message)
    }
}

impl<T: Send + 'static> Shared<T> {
    fn deliver(&self, subscribers: &List<T>, patience: Duration, message: T) -> usize
    where
        T: Clone,
    {
        let Some((last, others)) = subscribers.split_last() else {
            return 0;
        };
        let others = others
            .iter()
            .map(|one| one.deliver(message.clone(), patience));
        let mut told = 0;
        let mut is_one_over = false;
        let mut count = |delivered| match delivered {
            Delivered::Told => told += 1,
            Delivered::Missed => {}
            Delivered::Over => is_one_over = true,
        };
        others.for_each(&mut count);
        count(last.deliver(message, patience));
        if is_one_over {
            self.remove(Subscriber::is_over);
        }
        told
    }

    fn add(self: &Arc<Self>, subscriber: Subscriber<T>) -> Result<Subscription, SubscribeError> {
        let is_full = |state: &State<T>| state.subscribers.len() >= state.limit;
        if is_full(&locked(&self.state)) {
            self.remove(Subscriber::is_over);
        }
        let subscriber = Arc::new(subscriber);
        let mut state = locked(&self.state);
        if is_full(&state) {
            return Err(SubscribeError(state.limit));
        }
        Arc::make_mut(&mut state.subscribers).push(Arc::clone(&subscriber));
        Ok(Subscription::new(subscriber))
    }

    /// Removes subscribers.
    fn remove(&self, is_out: impl Fn(&Subscriber<T>) -> bool) {
        // The lists are dropped after the lock is released, since they hold values of the program.
        let (_before, out) = {
            let mut state = locked(&self.state);
            let (out, kept): (Vec<_>, Vec<_>) = state
                .subscribers
                .iter()
                .cloned()
                .partition(|subscriber| is_out(subscriber));
            (
                core::mem::replace(&mut state.subscribers, Arc::new(kept)),
                out,
            )
        };
        out.iter().for_each(|subscriber| subscriber.close());
    }
}

impl<T> Clone for Topic<T> {
    fn clone(&self) -> Topic<T> {
        Topic(Arc::clone(&self.0))
    }
}

impl<T> fmt::Debug for Topic<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Topic")
            .field("subscribers", &locked(&self.0.state).subscribers.len())
            .finish_non_exhaustive()
    }
}

/// A send to a topic publishes. It always succeeds.
impl<T: Clone + Send + 'static> Tell<T> for Topic<T> {
    fn send(&self, message: T) -> Result<(), SendError<T>> {
        self.publish(message);
        Ok(())
    }
    fn try_send(&self, message: T) -> Result<(), SendError<T>> {
        self.send(message)
    }
}

impl<T: Clone + Send + 'static> Recipient<T> for Topic<T> {
    fn target(&self) -> Target<T> {
        Target::of(WeakTopic(Arc::downgrade(&self.0)))
    }
}

struct WeakTopic<T: 'static>(Weak<Shared<T>>);

impl<T: Clone + Send + 'static> Sends<T> for WeakTopic<T> {
    fn tell(&self, message: T, _: Patience) -> Result<(), SendError<T>> {
        match self.0.upgrade() {
            Some(topic) => Topic(topic).send(message),
            None => Err(SendError::new(message, "topic", Refusal::Closed)),
        }
    }

    fn has_ended(&self) -> bool {
        self.0.strong_count() == 0
    }
}

/// The topic has as many subscribers as its limit allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubscribeError(usize);

impl fmt::Display for SubscribeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "the topic has {} subscribers, and may have no more",
            self.0
        )
    }
}

impl Error for SubscribeError {}
