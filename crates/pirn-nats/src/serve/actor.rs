//! What can be served: actors of this process.

use core::ops::Deref;
use pirn_actor::{Actor, Address, Handler, Ref, SendError, reply::Reply};
use serde::Serialize;

/// An actor of this process, which can be served to other nodes: a [`Ref`] or an [`Address`].
pub trait Served: Deref<Target = dyn Actor> + Clone + Send + 'static {}

impl<A: Deref<Target = dyn Actor> + Clone + Send + 'static> Served for A {}

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

impl<S, M> Answers<M> for Ref<S>
where
    S: Handler<M, Reply: Serialize + 'static> + Send + 'static,
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
