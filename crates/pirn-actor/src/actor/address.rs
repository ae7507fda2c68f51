//! Addresses: what a sender has to know of an actor, without the type of its state.

use super::cell::Cell;
use super::ending::Mortal;
use super::handle::Handle;
use super::passing::Passed;
use super::sending::Patience;
use super::weak::WeakAddress;
use crate::edges::To;
use crate::error::{AskError, Exit, SendError};
use crate::identity::{Identity, current_limit};
use crate::mailbox::Phase;
use crate::monitor::Monitor;
use crate::reply::Reply;
use crate::time::Limit;
use crate::time::timers::Handled;
use core::fmt;
use core::time::Duration;
use std::sync::Arc;

/// What can be sent messages of the type `M`: an actor here or elsewhere, a pool, a topic.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Tell};
///
/// fn greet(to: &impl Tell<String>) {
///     to.send("hello".to_string()).unwrap();
/// }
/// let log = actor::consumer(|line: String| println!("{line}"));
/// greet(&log);
/// ```
pub trait Tell<M> {
    /// Sends a message, and waits for room if that is how the receiver is made.
    ///
    /// # Errors
    /// The message comes back.
    fn send(&self, message: M) -> Result<(), SendError<M>>;

    /// Sends a message if that is possible without waiting.
    ///
    /// # Errors
    /// The message comes back.
    fn try_send(&self, message: M) -> Result<(), SendError<M>>;
}

/// What answers messages of the type `M`: an actor here or elsewhere, or a pool.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Ask, AskError};
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

/// An actor, to those who send it messages of the type `M` and may get answers of the type `R`.
pub(crate) trait Receive<M, R>: Mortal {
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>>;
    fn tell_first(&self, message: M) -> Result<(), SendError<M>>;
    /// Puts a message after all others, whatever the capacity.
    fn tell_beyond(&self, message: M) -> Result<(), SendError<M>> {
        self.tell(message, Patience::None)
    }
    /// Does the same, and drops `handled` when the message has been handled.
    fn tell_tracked(&self, message: M, handled: Handled) -> Result<(), SendError<M>> {
        drop(handled);
        self.tell(message, Patience::None)
    }
    fn request(
        &self,
        message: M,
        limit: Limit,
        patience: Patience,
    ) -> Result<Reply<R>, SendError<M>>;
    /// Puts a message whose answer goes on. If it is refused, those who wait for the answer hear of
    /// that, too.
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>>;
    fn retain(&self);
    fn release(&self);
    fn end(&self, phase: Phase);
    fn identity(&self) -> &Identity;
    /// Adds those, in order, who each do their part before there is an answer.
    fn stages(&self, stages: &mut Vec<To>) {
        stages.push(To::Actor(self.identity().clone()));
    }
    fn len(&self) -> usize;
}

impl<S, M, R> Receive<M, R> for Cell<S>
where
    S: Handle<M, Reply = R> + Send + 'static,
    M: Send + 'static,
    R: Send + 'static,
{
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        Cell::tell(self, message, patience)
    }
    fn tell_first(&self, message: M) -> Result<(), SendError<M>> {
        Cell::tell_first(self, message)
    }
    fn tell_beyond(&self, message: M) -> Result<(), SendError<M>> {
        Cell::tell_beyond(self, message)
    }
    fn tell_tracked(&self, message: M, handled: Handled) -> Result<(), SendError<M>> {
        Cell::tell_tracked(self, message, handled)
    }
    fn request(
        &self,
        message: M,
        limit: Limit,
        patience: Patience,
    ) -> Result<Reply<R>, SendError<M>> {
        Cell::request(self, message, limit, patience)
    }
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>> {
        Cell::pass(self, passed, patience)
    }
    fn retain(&self) {
        Cell::retain(self);
    }
    fn release(&self) {
        Cell::release(self);
    }
    fn end(&self, phase: Phase) {
        Cell::end(self, phase);
    }
    fn identity(&self) -> &Identity {
        Cell::identity(self)
    }
    fn len(&self) -> usize {
        self.mailbox().len()
    }
}

/// The address of an actor for messages of the type `M`, which it answers with an `R`.
///
/// Cheap to clone, and for any thread. As a [`Ref`](crate::Ref) does, it keeps the actor open.
pub struct Address<M: 'static, R: 'static = ()>(Arc<dyn Receive<M, R>>);

impl<M, R> Address<M, R> {
    pub(crate) fn new(actor: Arc<dyn Receive<M, R>>) -> Address<M, R> {
        actor.retain();
        Address(actor)
    }

    pub(crate) fn receiver(&self) -> &Arc<dyn Receive<M, R>> {
        &self.0
    }

    pub(crate) fn identity(&self) -> &Identity {
        self.0.identity()
    }

    /// Sends a message. If the mailbox is full, waits for room, or does what the actor's
    /// [`Overflow`](crate::Overflow) says.
    ///
    /// # Errors
    /// The message comes back: the actor has ended, or there was no room.
    pub fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.0.tell(message, Patience::Until(current_limit()))
    }

    /// Sends a message if there is room in the mailbox.
    ///
    /// # Errors
    /// The message comes back: the actor has ended, or the mailbox is full
    /// ([`SendError::is_full`]).
    pub fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.0.tell(message, Patience::None)
    }

    /// Sends a message that comes before all others in the mailbox, and for which there is always
    /// room.
    ///
    /// # Errors
    /// The message comes back: the actor has ended.
    pub fn send_urgent(&self, message: M) -> Result<(), SendError<M>> {
        self.0.tell_first(message)
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

    pub(crate) fn mortal(&self) -> Arc<dyn Mortal> {
        Arc::clone(&self.0) as Arc<_>
    }

    fn ask_within(&self, message: M, limit: Limit) -> Result<R, AskError> {
        let request = self.0.request(message, limit, Patience::Until(limit));
        request
            .map_err(SendError::into_ask_error)?
            .recv_within(limit)
    }

    /// Sends a message, and returns the answer that is on its way.
    ///
    /// # Errors
    /// The message comes back, as from [`send`](Address::send).
    pub fn ask_later(&self, message: M) -> Result<Reply<R>, SendError<M>> {
        let limit = current_limit();
        self.0.request(message, limit, Patience::Until(limit))
    }

    /// Returns an address that does not keep the actor open.
    pub fn downgrade(&self) -> WeakAddress<M, R> {
        WeakAddress::of(Arc::downgrade(&self.0), self.0.identity().clone())
    }

    /// Has the actor end after the messages that are in its mailbox now.
    pub fn close(&self) {
        self.0.end(Phase::Closing);
    }

    /// Has the actor end after the message that it is at.
    pub fn stop(&self) {
        self.0.end(Phase::Stopping);
    }

    /// Has the actor end, and interrupts the message that it is at: its blocking calls fail.
    pub fn kill(&self) {
        self.0.end(Phase::Killing);
    }

    /// Waits until the actor has ended.
    pub fn join(&self) -> Exit {
        self.0
            .ending()
            .join(Limit::NEVER)
            .expect("without a time limit it has ended")
    }

    /// Waits until the actor has ended, for as long as `timeout`.
    pub fn join_timeout(&self, timeout: Duration) -> Option<Exit> {
        self.0.ending().join(Limit::after(timeout))
    }

    /// Returns how the actor has ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.0.ending().exit()
    }

    /// Returns what tells of the actor's end.
    pub fn monitor(&self) -> Monitor {
        Monitor::of(self.mortal())
    }

    /// Calls a function when the actor ends, on its thread; at once and here if it has ended.
    pub fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static) {
        self.0.ending().watch(Box::new(f));
    }

    /// Returns the actor's name.
    pub fn name(&self) -> Arc<str> {
        self.0.identity().name()
    }

    /// Returns the number of messages that the actor has not begun.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true if the actor has begun all messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<M, R> Clone for Address<M, R> {
    fn clone(&self) -> Address<M, R> {
        Address::new(Arc::clone(&self.0))
    }
}

impl<M, R> Drop for Address<M, R> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<M, R> PartialEq for Address<M, R> {
    fn eq(&self, other: &Address<M, R>) -> bool {
        self.0.identity() == other.0.identity()
    }
}

impl<M, R> Eq for Address<M, R> {}

impl<M, R> fmt::Debug for Address<M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Address").field(self.0.identity()).finish()
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

impl<S, M> Tell<M> for crate::Ref<S>
where
    S: Handle<M> + Send + 'static,
    M: Send + 'static,
{
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        crate::Ref::send(self, message)
    }
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        crate::Ref::try_send(self, message)
    }
}

impl<S, M> Ask<M> for crate::Ref<S>
where
    S: Handle<M, Reply: 'static> + Send + 'static,
    M: Send + 'static,
{
    type Reply = S::Reply;

    fn ask(&self, message: M) -> Result<S::Reply, AskError> {
        crate::Ref::ask(self, message)
    }
    fn ask_timeout(&self, message: M, timeout: Duration) -> Result<S::Reply, AskError> {
        crate::Ref::ask_timeout(self, message, timeout)
    }
}
