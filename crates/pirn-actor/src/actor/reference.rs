//! References to an actor whose state's type is known.

use super::address::Address;
use super::cell::Cell;
use super::ending::Mortal;
use super::handle::Handle;
use super::sending::Patience;
use crate::error::{AskError, Exit, SendError};
use crate::identity::current_limit;
use crate::mailbox::Phase;
use crate::monitor::Monitor;
use crate::reply::Reply;
use crate::time::Limit;
use core::fmt;
use core::time::Duration;
use std::sync::{Arc, Weak};

/// A reference to an actor with the state `S`, which can be sent all messages that `S` handles.
///
/// References are cheap to clone, and may be used from any thread. When the last one is dropped
/// ([`Address`]es count, too), the actor is closed: it handles what is in its mailbox, and ends.
pub struct Ref<S: Send + 'static>(Arc<Cell<S>>);

impl<S: Send + 'static> Ref<S> {
    /// Returns the reference that a new actor has.
    pub(super) fn first(cell: Arc<Cell<S>>) -> Ref<S> {
        Ref(cell)
    }

    pub(super) fn new(cell: Arc<Cell<S>>) -> Ref<S> {
        cell.retain();
        Ref(cell)
    }

    pub(crate) fn cell(&self) -> &Arc<Cell<S>> {
        &self.0
    }

    /// Sends a message. If the mailbox is full, waits for room, or does what the actor's
    /// [`Overflow`](crate::Overflow) says.
    ///
    /// # Errors
    /// The message comes back: the actor has ended, or there was no room.
    pub fn send<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
    {
        self.0.tell(message, Patience::Until(current_limit()))
    }

    /// Sends a message if there is room in the mailbox.
    ///
    /// # Errors
    /// The message comes back: the actor has ended, or the mailbox is full
    /// ([`SendError::is_full`]).
    pub fn try_send<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
    {
        self.0.tell(message, Patience::None)
    }

    /// Sends a message that comes before all others in the mailbox, and for which there is always
    /// room.
    ///
    /// # Errors
    /// The message comes back: the actor has ended.
    pub fn send_urgent<M: Send + 'static>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
    {
        self.0.tell_first(message)
    }

    /// Sends messages that are handled one after the other, with nothing between them. There is
    /// room for all of them if there is for one. Does not wait.
    ///
    /// # Errors
    /// All messages come back.
    pub fn send_all<M: Send + 'static>(
        &self,
        messages: impl IntoIterator<Item = M>,
    ) -> Result<(), SendError<Vec<M>>>
    where
        S: Handle<M>,
    {
        self.0.tell_all(messages.into_iter().collect())
    }

    /// Sends a message, and waits for the answer.
    ///
    /// An actor that asks while its own asker has a deadline waits no longer than that.
    ///
    /// # Errors
    /// See [`AskError`]. An ask that could never be answered, because actors would wait for each
    /// other in a circle, is an error at once.
    pub fn ask<M: Send + 'static>(&self, message: M) -> Result<S::Reply, AskError>
    where
        S: Handle<M, Reply: 'static>,
    {
        self.0.ask_within(message, current_limit())
    }

    /// Sends a message, and waits for the answer for as long as `timeout`, room in the mailbox
    /// included. A request that nobody waits for any more is not handled.
    ///
    /// # Errors
    /// As for [`ask`](Ref::ask).
    pub fn ask_timeout<M: Send + 'static>(
        &self,
        message: M,
        timeout: Duration,
    ) -> Result<S::Reply, AskError>
    where
        S: Handle<M, Reply: 'static>,
    {
        let limit = Limit::after(timeout).min(current_limit());
        self.0.ask_within(message, limit)
    }

    /// Sends a message, and returns the answer that is on its way.
    ///
    /// # Errors
    /// The message comes back, as from [`send`](Ref::send).
    pub fn ask_later<M: Send + 'static>(&self, message: M) -> Result<Reply<S::Reply>, SendError<M>>
    where
        S: Handle<M, Reply: 'static>,
    {
        let limit = current_limit();
        self.0.request(message, limit, Patience::Until(limit))
    }

    /// Runs code in the actor, between two messages, and returns its result.
    ///
    /// # Errors
    /// As for [`ask`](Ref::ask).
    ///
    /// # Examples
    /// ```
    /// let list = pirn_actor::spawn(vec![3, 1, 2]);
    /// let largest = list.run(|list| {
    ///     list.sort();
    ///     list.last().copied()
    /// });
    /// assert_eq!(largest, Ok(Some(3)));
    /// ```
    pub fn run<F, R>(&self, code: F) -> Result<R, AskError>
    where
        F: FnOnce(&mut S) -> R + Send + 'static,
        R: Send + 'static,
    {
        let limit = current_limit();
        self.0.run_later(code, limit)?.recv_within(limit)
    }

    /// Runs code in the actor, and returns its result, which is on its way.
    ///
    /// # Errors
    /// As for [`ask`](Ref::ask), without the wait for the answer.
    pub fn run_later<F, R>(&self, code: F) -> Result<Reply<R>, AskError>
    where
        F: FnOnce(&mut S) -> R + Send + 'static,
        R: Send + 'static,
    {
        self.0.run_later(code, current_limit())
    }

    /// Runs code in the actor, and does not wait for it.
    ///
    /// # Errors
    /// The code comes back, as a message does from [`send`](Ref::send).
    pub fn run_detached<F>(&self, code: F) -> Result<(), SendError<F>>
    where
        F: FnOnce(&mut S) + Send + 'static,
    {
        self.0.run_detached(code)
    }

    /// Returns an address for one type of message: all that a sender has to know.
    pub fn address<M>(&self) -> Address<M, S::Reply>
    where
        S: Handle<M, Reply: 'static>,
        M: Send + 'static,
    {
        Address::new(Arc::clone(&self.0) as Arc<_>)
    }

    /// Returns a reference that does not keep the actor open.
    pub fn downgrade(&self) -> WeakRef<S> {
        WeakRef(Arc::downgrade(&self.0))
    }

    /// Has the actor end after the messages that are in its mailbox now.
    pub fn close(&self) {
        self.0.end(Phase::Closing);
    }

    /// Has the actor end after the message that it is at. Those who wait for answers to others get
    /// [`AskError::Gone`].
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

    /// Waits until the actor's recipe has made its state.
    ///
    /// # Errors
    /// The actor has ended before, for instance because the recipe failed.
    pub fn ready(&self) -> Result<(), Exit> {
        match self.0.ending().wait_built(1, Limit::NEVER).0 {
            None => Ok(()),
            Some(exit) => Err(exit),
        }
    }

    /// Returns how the actor has ended, if it has.
    pub fn exit(&self) -> Option<Exit> {
        self.0.exit()
    }

    /// Returns what tells of the actor's end.
    pub fn monitor(&self) -> Monitor {
        Monitor::of(Arc::clone(&self.0) as Arc<_>)
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
        self.0.mailbox().len()
    }

    /// Returns true if the actor has begun all messages.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<S: Send + 'static> Clone for Ref<S> {
    fn clone(&self) -> Ref<S> {
        Ref::new(Arc::clone(&self.0))
    }
}

impl<S: Send + 'static> Drop for Ref<S> {
    fn drop(&mut self) {
        self.0.release();
    }
}

impl<S: Send + 'static> PartialEq for Ref<S> {
    fn eq(&self, other: &Ref<S>) -> bool {
        self.0.identity() == other.0.identity()
    }
}

impl<S: Send + 'static> Eq for Ref<S> {}

impl<S: Send + 'static> fmt::Debug for Ref<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ref").field(self.0.identity()).finish()
    }
}

/// A reference that does not keep its actor open.
pub struct WeakRef<S: Send + 'static>(Weak<Cell<S>>);

impl<S: Send + 'static> WeakRef<S> {
    /// Returns a reference, unless the actor is gone. It may be closing.
    pub fn upgrade(&self) -> Option<Ref<S>> {
        self.0.upgrade().map(Ref::new)
    }
}

impl<S: Send + 'static> Clone for WeakRef<S> {
    fn clone(&self) -> WeakRef<S> {
        WeakRef(Weak::clone(&self.0))
    }
}

impl<S: Send + 'static> fmt::Debug for WeakRef<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WeakRef")
    }
}
