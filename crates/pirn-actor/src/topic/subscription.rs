//! What a subscriber has of its topic.

use super::Shared;
use super::subscriber::Subscriber;
use core::fmt;
use std::sync::{Arc, Weak};

/// Being told what is published, for as long as this exists.
///
/// When it has been dropped, nobody is told anything any more: the drop waits for a call of the
/// subscriber that is on its way, unless that call itself is what drops it. Messages that are in
/// the subscriber's mailbox stay there.
///
/// # Examples
/// ```
/// use pirn_actor::Topic;
///
/// let prices = Topic::inline();
/// let subscription = prices.subscribe_with(|price: u32| println!("{price}"));
/// assert_eq!(prices.publish(5), 1);
/// drop(subscription);
/// assert_eq!(prices.publish(6), 0);
/// ```
#[must_use = "a subscription that is dropped ends; `detach` keeps it"]
pub struct Subscription(Option<Arc<dyn Ends>>);

impl Subscription {
    pub(super) fn new<T: Send + 'static>(
        topic: Weak<Shared<T>>,
        subscriber: Arc<Subscriber<T>>,
    ) -> Subscription {
        Subscription(Some(Arc::new(Subscribed { topic, subscriber })))
    }

    /// Has the subscription last until the subscriber ends, or the topic.
    pub fn detach(mut self) {
        self.0 = None;
    }

    /// Returns the number of messages that the subscriber has not been told because it had no room
    /// for them.
    pub fn missed(&self) -> u64 {
        self.ends().missed()
    }

    /// Returns true if the subscriber has ended.
    pub fn is_over(&self) -> bool {
        self.ends().is_over()
    }

    fn ends(&self) -> &dyn Ends {
        &**self.0.as_ref().expect("it is given up with this")
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        if let Some(subscribed) = self.0.take() {
            subscribed.end();
        }
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription")
            .field("missed", &self.missed())
            .finish_non_exhaustive()
    }
}

/// A subscription, whatever is published.
trait Ends: Send + Sync {
    fn end(&self);
    fn missed(&self) -> u64;
    fn is_over(&self) -> bool;
}

struct Subscribed<T: 'static> {
    topic: Weak<Shared<T>>,
    subscriber: Arc<Subscriber<T>>,
}

impl<T: Send + 'static> Ends for Subscribed<T> {
    fn end(&self) {
        if let Some(topic) = self.topic.upgrade() {
            topic.remove(|other| core::ptr::eq(other, &raw const *self.subscriber));
        }
        self.subscriber.end();
    }

    fn missed(&self) -> u64 {
        self.subscriber.missed()
    }

    fn is_over(&self) -> bool {
        self.subscriber.is_over()
    }
}
