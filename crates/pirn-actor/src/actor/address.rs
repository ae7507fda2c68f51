//! Addresses: references for sending that do not name the type of the actor's state.

use super::reference::reference;
use super::sending::Receive;
use super::weak::WeakAddress;
use crate::error::{AskError, SendError};
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::Patience;
use crate::reply::Reply;
use crate::time::Limit;
use core::time::Duration;
use std::sync::Arc;

/// A receiver of messages of the type `M`: an actor here or elsewhere, a pool, a topic.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
/// use pirn_actor::address::Tell;
///
/// fn greet(to: &impl Tell<String>) {
///     to.send("hello".to_string()).unwrap();
/// }
/// let log = actor::consumer(|line: String| println!("{line}"));
/// greet(&log);
/// ```
pub trait Tell<M> {
    /// Sends a message. Waits for room if the receiver was made to let its senders wait.
    ///
    /// # Errors
    /// The message comes back if the receiver does not take it.
    fn send(&self, message: M) -> Result<(), SendError<M>>;

    /// Sends a message if the receiver takes it without a wait.
    ///
    /// # Errors
    /// The message comes back if the receiver does not take it.
    fn try_send(&self, message: M) -> Result<(), SendError<M>>;
}

/// A receiver that answers messages of the type `M`: an actor here or elsewhere, or a pool.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, AskError};
/// use pirn_actor::address::Ask;
///
/// fn length_of(text: &str, by: &impl Ask<String, Reply = usize>) -> Result<usize, AskError> {
///     by.ask(text.to_string())
/// }
/// let length = actor::function(|text: String| text.len());
/// assert_eq!(length_of("pirn", &length), Ok(4));
/// ```
pub trait Ask<M>: Tell<M> {
    /// The answer.
    type Reply;

    /// Sends a message, and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    fn ask(&self, message: M) -> Result<Self::Reply, AskError>;

    /// Sends a message, and waits for the answer for as long as `timeout`.
    ///
    /// # Errors
    /// See [`AskError`].
    fn ask_timeout(&self, message: M, timeout: Duration) -> Result<Self::Reply, AskError>;
}

/// The address of an actor for messages of the type `M`, which it answers with an `R`.
///
/// Cheap to clone and usable from any thread. Keeps the actor open and dereferences to [`Actor`],
/// as a [`Ref`](crate::Ref) does.
pub struct Address<M: 'static, R: 'static = ()> {
    cell: Arc<dyn Receive<M, R>>,
}

reference!([M, R] Address<M, R> { cell }, "Address", dyn Actor);

impl<M, R> Address<M, R> {
    pub(crate) fn new(cell: Arc<dyn Receive<M, R>>) -> Address<M, R> {
        cell.retain();
        Address { cell }
    }

    /// Takes over a reference that the caller has counted.
    pub(crate) fn adopt(cell: Arc<dyn Receive<M, R>>) -> Address<M, R> {
        Address { cell }
    }

    pub(crate) fn receiver(&self) -> &Arc<dyn Receive<M, R>> {
        &self.cell
    }

    /// Sends a message. If the mailbox is full, the actor's [`Overflow`](crate::Overflow) decides:
    /// by default the sender waits for room.
    ///
    /// # Errors
    /// The message comes back: the actor has ended, or there was no room.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.cell.tell(message, Patience::Until(current_limit()))
    }

    /// Sends a message if there is room in the mailbox.
    ///
    /// # Errors
    /// The message comes back: the actor has ended, or the mailbox is full
    /// ([`SendError::is_full`]).
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.cell.tell(message, Patience::None)
    }

    /// Sends a message that comes before all others in the mailbox. There is always room for it.
    ///
    /// # Errors
    /// The message comes back: the actor has ended.
    pub fn send_urgent(&self, message: M) -> Result<(), SendError<M>> {
        self.cell.tell(message, Patience::Urgent)
    }

    /// Sends a message, and waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask(&self, message: M) -> Result<R, AskError> {
        self.ask_within(message, current_limit())
    }

    /// Sends a message, and waits for the answer for as long as `timeout`.
    ///
    /// # Errors
    /// See [`AskError`].
    pub fn ask_timeout(&self, message: M, timeout: Duration) -> Result<R, AskError> {
        self.ask_within(message, Limit::after(timeout).min(current_limit()))
    }

    fn ask_within(&self, message: M, limit: Limit) -> Result<R, AskError> {
        let request = self.cell.request(message, limit);
        request
            .map_err(SendError::into_ask_error)?
            .recv_within(limit)
    }

    /// Sends a message, and returns a [`Reply`] to wait for.
    ///
    /// # Errors
    /// The message comes back, as from [`send`](Address::send).
    pub fn ask_later(&self, message: M) -> Result<Reply<R>, SendError<M>> {
        let limit = current_limit();
        self.cell.request(message, limit)
    }

    /// Returns an address that does not keep the actor open.
    pub fn downgrade(&self) -> WeakAddress<M, R> {
        WeakAddress::of(Arc::downgrade(&self.cell), self.cell.identity().clone())
    }
}

impl<M, R> Tell<M> for Address<M, R> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        Address::send(self, message)
    }
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        Address::try_send(self, message)
    }
}

impl<M, R> Ask<M> for Address<M, R> {
    type Reply = R;

    fn ask(&self, message: M) -> Result<R, AskError> {
        Address::ask(self, message)
    }
    fn ask_timeout(&self, message: M, timeout: Duration) -> Result<R, AskError> {
        Address::ask_timeout(self, message, timeout)
    }
}
