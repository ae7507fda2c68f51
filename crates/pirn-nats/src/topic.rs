//! Topics: what is published goes to all who are subscribed, on all nodes.

use crate::node::{Node, Room, Shared};
use crate::packet::{Kind, Packet};
use crate::serve::Task;
use crate::subject::{Place, subject};
use crate::wire::{Wire, decode, encode};
use crate::{NodeError, engine::Incoming};
use core::fmt;
use core::marker::PhantomData;
use pirn::thread::{self, Panic};
use pirn_actor::SendError;
use pirn_actor::address::Tell;
use pirn_actor::error::Refusal;
use pirn_actor::time::deadline;
use std::sync::Arc;

/// A topic: what is published goes to all who are subscribed at that time, at most once to each.
///
/// # Examples
/// ```no_run
/// use pirn_nats::{Node, wire};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct Price(String, u32);
/// wire!(Price, "shop.Price");
///
/// let node = Node::connect("nats://127.0.0.1:4222", "shop")?;
/// let prices = node.topic::<Price>("prices");
/// let ticker = pirn_actor::consumer(|Price(of, price)| println!("{of}: {price}"));
/// let subscription = prices.subscribe(&ticker)?; // ends when it is dropped
/// prices.publish(Price("tea".to_string(), 3)).unwrap();
/// # Ok::<(), pirn_nats::NodeError>(())
/// ```
pub struct Topic<M> {
    node: Node,
    name: Arc<str>,
    subject: Arc<str>,
    messages: PhantomData<fn(M)>,
}

impl<M: Wire> Topic<M> {
    pub(crate) fn new(node: Node, name: &str) -> Topic<M> {
        let subject = subject(&node.shared().system, Place::Topic, name).into();
        Topic {
            node,
            name: name.into(),
            subject,
            messages: PhantomData,
        }
    }

    /// Publishes a message: hands it to the server.
    ///
    /// # Errors
    /// The message comes back: see [`Remote::send`](crate::Remote::send).
    pub fn publish(&self, message: M) -> Result<(), SendError<M>> {
        self.tell(message, Room::Until(deadline()))
    }

    fn tell(&self, message: M, room: Room) -> Result<(), SendError<M>> {
        let sent = encode(&message).map_err(Refusal::Failed).and_then(|body| {
            let mut packet = Packet {
                subject: self.subject.to_string(),
                body,
                ..Packet::default()
            };
            packet.head.kind = Some(Kind {
                name: M::NAME.to_string(),
                version: M::VERSION,
            });
            self.node.shared().publish(packet, room)
        });
        sent.map_err(|refusal| SendError::new(message, Arc::clone(&self.name), refusal))
    }

    /// Has everything that is published from now on sent to an actor: until the subscription is
    /// dropped, or the actor takes no messages any more.
    ///
    /// # Errors
    /// The node is closed, or the server does not answer in time.
    pub fn subscribe<T>(&self, to: &T) -> Result<Subscription, NodeError>
    where
        T: Tell<M> + Clone + Send + 'static,
    {
        let shared = Arc::clone(self.node.shared());
        let incoming = shared.engine.serve(self.subject.to_string(), None)?;
        shared.settle()?;
        let task = Arc::new(Task::new(incoming.stop()));
        shared.add(&task)?;
        let (over, to) = (Arc::clone(&task), to.clone());
        let receive = move || {
            forward(incoming, &to, &shared);
            over.over();
        };
        let thread = thread::Builder::new().name("nats topic".to_string());
        let spawned = thread.spawn(receive).map_err(NodeError::unavailable);
        spawned.map(|_| Subscription(task))
    }
}

/// Sends what comes to an actor, until that takes no more.
fn forward<M: Wire>(mut incoming: Box<dyn Incoming>, to: &impl Tell<M>, shared: &Shared) {
    while let Some(packet) = incoming.recv() {
        let kind = packet.head.kind.as_ref();
        let is_known = kind.is_some_and(|kind| {
            kind.name == M::NAME && (M::OLDEST..=M::VERSION).contains(&kind.version)
        });
        let message = is_known.then(|| decode::<M>(&packet.body));
        let Some(Ok(message)) = message else {
            shared.undelivered();
            continue;
        };
        // A panic of a message's `drop` has been reported, and concerns no other message.
        let sent = Panic::catch(|| {
            let sent = to.send(message);
            sent.map_err(|error| error.refusal().clone())
        });
        match sent {
            Ok(Ok(())) => {}
            Ok(Err(Refusal::Closed)) => return,
            Ok(Err(_)) | Err(_) => shared.undelivered(),
        }
    }
}

impl<M: Wire> Tell<M> for Topic<M> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.publish(message)
    }

    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.tell(message, Room::No)
    }
}

impl<M> Clone for Topic<M> {
    fn clone(&self) -> Topic<M> {
        Topic {
            node: self.node.clone(),
            name: Arc::clone(&self.name),
            subject: Arc::clone(&self.subject),
            messages: PhantomData,
        }
    }
}

impl<M> fmt::Debug for Topic<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Topic").field(&self.name).finish()
    }
}

/// A subscription to a topic. It ends when it is dropped.
#[must_use = "a subscription that is dropped ends"]
pub struct Subscription(Arc<Task>);

impl Drop for Subscription {
    fn drop(&mut self) {
        self.0.stop();
    }
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Subscription")
    }
}
