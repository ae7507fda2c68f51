//! What can be served: actors of this process.

use pirn_actor::{Address, Exit, Handle, Ref, Reply, SendError};
use serde::Serialize;

/// An actor of this process, which can be served to other nodes: a [`Ref`] or an [`Address`].
pub trait Served: Clone + Send + 'static {
    /// Has the actor end, and interrupts the message that it is at.
    fn kill(&self);

    /// Calls a function when the actor ends.
    fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static);
}

/// An actor of this process that answers messages of the type `M`, with something that can be sent.
pub trait Answers<M>: Served {
    /// The answer.
    type Reply: Serialize + Send + 'static;

    /// Sends a message.
    ///
    /// # Errors
    /// The message comes back.
    fn send(&self, message: M) -> Result<(), SendError<M>>;

    /// Sends a message, and returns the answer that is on its way.
    ///
    /// # Errors
    /// The message comes back.
    fn ask_later(&self, message: M) -> Result<Reply<Self::Reply>, SendError<M>>;
}

impl<S: Send + 'static> Served for Ref<S> {
    fn kill(&self) {
        Ref::kill(self);
    }

    fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static) {
        Ref::on_exit(self, f);
    }
}

impl<S, M> Answers<M> for Ref<S>
where
    S: Handle<M, Reply: Serialize + 'static> + Send + 'static,
    M: Send + 'static,
{
    type Reply = S::Reply;

    fn send(&self, message: M) -> Result<(), SendError<M>> {
        Ref::send(self, message)
    }

    fn ask_later(&self, message: M) -> Result<Reply<S::Reply>, SendError<M>> {
        Ref::ask_later(self, message)
    }
}

impl<M: Send + 'static, R: Send + 'static> Served for Address<M, R> {
    fn kill(&self) {
        Address::kill(self);
    }

    fn on_exit(&self, f: impl FnOnce(&Exit) + Send + 'static) {
        Address::on_exit(self, f);
    }
}

impl<M, R> Answers<M> for Address<M, R>
where
    M: Send + 'static,
    R: Serialize + Send + 'static,
{
    type Reply = R;

    fn send(&self, message: M) -> Result<(), SendError<M>> {
        Address::send(self, message)
    }

    fn ask_later(&self, message: M) -> Result<Reply<R>, SendError<M>> {
        Address::ask_later(self, message)
    }
}
