//! Actors on other nodes.

use crate::node::{Node, Room};
use crate::packet::{Head, Kind, Packet};
use crate::pending::Asker;
use crate::serve::{WATCH, Whereabouts};
use crate::subject::{Place, subject};
use crate::wire::{Wire, encode};
use core::convert::Infallible;
use core::fmt;
use core::marker::PhantomData;
use core::time::Duration;
use pirn_actor::address::{Ask, Tell};
use pirn_actor::error::Refusal;
use pirn_actor::reply::Reply;
use pirn_actor::time::deadline;
use pirn_actor::{AskError, Context, Handler, Monitor, SendError, reply};
use serde::de::DeserializeOwned;
use std::sync::Arc;
use std::time::Instant;

/// An actor with a state of the type `A`, or a group of them, by name: on another node, or on this
/// one. It is sent what `A` handles.
///
/// Messages from one thread to one actor are handled in the order in which they were sent, as long
/// as neither node's connection is cut. A message is handled at most once: it is lost if no node
/// serves the name, or if a connection is cut meanwhile.
///
/// # Examples
/// ```no_run
/// use pirn_actor::{AskError, Context, Handler};
/// use pirn_nats::{Node, Remote, wire};
/// use serde::{Deserialize, Serialize};
///
/// struct Account(i64);
/// #[derive(Serialize, Deserialize)]
/// struct Deposit(i64);
/// wire!(Deposit, "bank.Deposit");
/// impl Handler<Deposit> for Account {
///     type Reply = i64;
///     fn handle(&mut self, Deposit(amount): Deposit, _: &Context<Self>) -> i64 {
///         self.0 += amount;
///         self.0
///     }
/// }
///
/// let node = Node::connect("nats://127.0.0.1:4222", "bank")?;
/// let account: Remote<Account> = node.find("account.7");
/// match account.ask(Deposit(5)) {
///     Ok(balance) => println!("{balance} now"),
///     Err(AskError::Unreachable) => println!("no node has this account"),
///     Err(error) => println!("{error}"),
/// }
/// # Ok::<(), pirn_nats::NodeError>(())
/// ```
pub struct Remote<A> {
    node: Node,
    name: Arc<str>,
    subject: Arc<str>,
    actor: PhantomData<fn() -> A>,
}

/// The type of a remote actor that is a function: `Remote<Call<M, R>>` is asked with an `M`, and
/// answers with an `R`. There are no values of this type.
///
/// # Examples
/// ```no_run
/// use pirn_nats::{Call, Node, Remote, wire};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Serialize, Deserialize)]
/// struct PriceOf(String);
/// wire!(PriceOf, "shop.PriceOf");
///
/// let node = Node::connect("nats://127.0.0.1:4222", "shop")?;
/// let prices: Remote<Call<PriceOf, u32>> = node.group("prices");
/// let price = prices.ask(PriceOf("tea".to_string()));
/// # Ok::<(), pirn_nats::NodeError>(())
/// ```
pub struct Call<M, R>(Infallible, PhantomData<fn(M) -> R>);

impl<M, R: Send> Handler<M> for Call<M, R> {
    type Reply = R;

    fn handle(&mut self, _: M, _: &Context<Self>) -> R {
        match self.0 {}
    }
}

impl<A> Remote<A> {
    pub(crate) fn new(node: Node, place: Place, name: &str) -> Remote<A> {
        let subject = subject(&node.shared().system, place, name).into();
        Remote {
            node,
            name: name.into(),
            subject,
            actor: PhantomData,
        }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Sends a message: hands it to the server. It is lost if no node serves the name.
    ///
    /// # Errors
    /// The message comes back: the node is closed, or the message is too large. Where very many
    /// messages are under way, or the connection has been cut for a while, this waits until they
    /// have left, or until the running thread is interrupted or its deadline passes.
    pub fn send<M>(&self, message: M) -> Result<(), SendError<M>>
    where
        A: Handler<M>,
        M: Wire,
    {
        self.tell(message, Room::Until(deadline()))
    }

    /// Does the same without waiting.
    ///
    /// # Errors
    /// The message comes back.
    pub fn try_send<M>(&self, message: M) -> Result<(), SendError<M>>
    where
        A: Handler<M>,
        M: Wire,
    {
        self.tell(message, Room::No)
    }

    fn tell<M: Wire>(&self, message: M, room: Room) -> Result<(), SendError<M>> {
        let sent = self.write(&message).and_then(|packet| {
            let shared = self.node.shared();
            shared.publish(packet, room)
        });
        sent.map_err(|refusal| self.refused(message, refusal))
    }

    /// Sends a message, and waits for the answer: for as long as the running thread's deadline
    /// says, and the node's [patience](crate::Builder::patience) lasts.
    ///
    /// # Errors
    /// - [`Unreachable`](AskError::Unreachable), at once, if no node serves the name;
    /// - [`Failed`](AskError::Failed) with the text, if the handler panicked, the actor does not
    ///   accept the message, or message or answer cannot be written or read, or are too large;
    /// - [`Gone`](AskError::Gone), if the actor has ended before it came to the request;
    /// - [`TimedOut`](AskError::TimedOut), if there was no answer for any other reason: the
    ///   request may have been handled;
    /// - [`Interrupted`](AskError::Interrupted), if the running thread was.
    ///
    /// A circle of actors on several nodes that wait for each other is not found: it times out.
    pub fn ask<M>(&self, message: M) -> Result<A::Reply, AskError>
    where
        A: Handler<M, Reply: DeserializeOwned + 'static>,
        M: Wire,
    {
        self.ask_within(message, self.patience())
    }

    /// Does the same for as long as `timeout`.
    ///
    /// # Errors
    /// As for [`ask`](Remote::ask).
    pub fn ask_timeout<M>(&self, message: M, timeout: Duration) -> Result<A::Reply, AskError>
    where
        A: Handler<M, Reply: DeserializeOwned + 'static>,
        M: Wire,
    {
        self.ask_within(message, timeout)
    }

    fn ask_within<M>(&self, message: M, timeout: Duration) -> Result<A::Reply, AskError>
    where
        A: Handler<M, Reply: DeserializeOwned + 'static>,
        M: Wire,
    {
        let until = limit(timeout);
        let sent = self.request(message, until);
        let reply = sent.map_err(SendError::into_ask_error)?;
        reply.recv_deadline(until)
    }

    /// Sends a message, and returns the answer that is on its way. After the deadline, or the
    /// node's patience, it is [`TimedOut`](AskError::TimedOut).
    ///
    /// # Errors
    /// The message comes back, as from [`send`](Remote::send).
    pub fn ask_later<M>(&self, message: M) -> Result<Reply<A::Reply>, SendError<M>>
    where
        A: Handler<M, Reply: DeserializeOwned + 'static>,
        M: Wire,
    {
        self.request(message, limit(self.patience()))
    }

    /// Returns what tells of the actor's end: how it ended, or
    /// [`NodeLost`](pirn_actor::Exit::NodeLost) if its node is closed, or has not been heard of for
    /// 3 s. Of a group, it is one member's end.
    ///
    /// # Errors
    /// As for [`ask`](Remote::ask): there is no actor to watch.
    pub fn monitor(&self) -> Result<Monitor, AskError> {
        let (to, reply) = reply::channel::<Whereabouts>();
        let until = limit(self.patience());
        let packet = Packet {
            head: Head {
                control: Some(WATCH.to_string()),
                ..Head::default()
            },
            ..self.packet()
        };
        let sent = self.demand(packet, Box::new(to), until);
        sent.map_err(|refusal| self.refused((), refusal).into_ask_error())?;
        let found = reply.recv_deadline(until)?;
        let (tell, monitor) = Monitor::new();
        let whom = (found.node.into(), found.actor);
        let members = &self.node.shared().members;
        members.watch(whom, found.name.into(), Box::new(tell), Instant::now());
        Ok(monitor)
    }

    fn patience(&self) -> Duration {
        self.node.shared().patience
    }

    fn packet(&self) -> Packet {
        Packet {
            subject: self.subject.to_string(),
            ..Packet::default()
        }
    }

    /// Makes the packet of a message.
    fn write<M: Wire>(&self, message: &M) -> Result<Packet, Refusal> {
        let mut packet = self.packet();
        packet.body = encode(message).map_err(Refusal::Failed)?;
        packet.head.kind = Some(Kind {
            name: M::NAME.to_string(),
            version: M::VERSION,
        });
        Ok(packet)
    }

    fn request<M>(&self, message: M, until: Instant) -> Result<Reply<A::Reply>, SendError<M>>
    where
        A: Handler<M, Reply: DeserializeOwned + 'static>,
        M: Wire,
    {
        let (to, reply) = reply::channel();
        let sent = self
            .write(&message)
            .and_then(|packet| self.demand(packet, Box::new(to), until));
        match sent {
            Ok(()) => Ok(reply),
            Err(refusal) => Err(self.refused(message, refusal)),
        }
    }

    /// Sends a request.
    fn demand(
        &self,
        mut packet: Packet,
        asker: Box<dyn Asker>,
        until: Instant,
    ) -> Result<(), Refusal> {
        let shared = self.node.shared();
        let number = shared.pending.enter(asker, until);
        let number = number.ok_or(Refusal::Closed)?;
        packet.reply_to = Some(format!("{}.{number}", shared.inbox));
        packet.head.deadline = Some(until.saturating_duration_since(Instant::now()));
        let sent = shared.publish(packet, Room::Until(Some(until)));
        if sent.is_err() {
            shared.pending.withdraw(number);
        }
        sent
    }

    fn refused<M>(&self, message: M, refusal: Refusal) -> SendError<M> {
        SendError::new(message, Arc::clone(&self.name), refusal)
    }
}

/// Returns the time until which an ask may take.
fn limit(timeout: Duration) -> Instant {
    let now = Instant::now();
    let far = now + Duration::from_secs(365 * 24 * 3600);
    let until = now.checked_add(timeout).unwrap_or(far).min(far);
    deadline().map_or(until, |deadline| deadline.min(until))
}

impl<A> Clone for Remote<A> {
    fn clone(&self) -> Remote<A> {
        Remote {
            node: self.node.clone(),
            name: Arc::clone(&self.name),
            subject: Arc::clone(&self.subject),
            actor: PhantomData,
        }
    }
}

impl<A> fmt::Debug for Remote<A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Remote").field(&self.name).finish()
    }
}

impl<A: Handler<M>, M: Wire> Tell<M> for Remote<A> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        Remote::send(self, message)
    }

    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        Remote::try_send(self, message)
    }
}

impl<A, M> Ask<M> for Remote<A>
where
    A: Handler<M, Reply: DeserializeOwned + 'static>,
    M: Wire,
{
    type Reply = A::Reply;

    fn ask(&self, message: M) -> Result<A::Reply, AskError> {
        Remote::ask(self, message)
    }

    fn ask_timeout(&self, message: M, timeout: Duration) -> Result<A::Reply, AskError> {
        Remote::ask_timeout(self, message, timeout)
    }
}
