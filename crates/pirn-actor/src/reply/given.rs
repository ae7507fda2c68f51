//! The side that gives an answer.

use super::slot::Giver;
use crate::error::{AskError, Failure};
use core::fmt;
use std::sync::Arc;

/// The right, and the duty, to answer one request.
///
/// One that is dropped tells the asker that its request is [`Gone`](AskError::Gone). So every ask
/// ends.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, AskError, Inbox, ReplyTo, RecvError};
///
/// enum Order {
///     Tea(u32, ReplyTo<String>),
///     Coffee(ReplyTo<String>),
/// }
/// let bar = actor::process(|inbox: &mut Inbox<Order>| -> Result<(), RecvError> {
///     loop {
///         match inbox.recv()? {
///             Order::Tea(cups, reply) => reply.send(format!("{cups} cups of tea")),
///             Order::Coffee(reply) => reply.fail("no coffee"),
///         }
///     }
/// });
/// assert_eq!(bar.ask(|reply| Order::Tea(2, reply)).unwrap(), "2 cups of tea");
/// let error = bar.ask(Order::Coffee).unwrap_err();
/// assert_eq!(error.to_string(), "the request failed: no coffee");
/// ```
pub struct ReplyTo<R>(Option<Giver<R>>);

impl<R> ReplyTo<R> {
    pub(super) const fn new(slot: Giver<R>) -> ReplyTo<R> {
        ReplyTo(Some(slot))
    }

    /// Gives the answer. It is dropped if nobody waits for it any more.
    pub fn send(self, answer: R) {
        self.give(Ok(answer));
    }

    /// Tells the asker that there is no answer, and why: [`AskError::Failed`].
    pub fn fail(self, why: impl Into<Arc<str>>) {
        self.give(Err(AskError::Failed(Failure::new(why))));
    }

    /// Returns false if nobody waits for the answer any more: the asker has given up.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|slot| !slot.is_abandoned())
    }

    /// Gives what the asker is to get: an answer, or this error. It is dropped if nobody waits for
    /// it any more.
    pub fn give(mut self, answer: Result<R, AskError>) {
        let mut slot = self.0.take().expect("it is taken once, here or by drop");
        drop(slot.give(answer));
    }

    /// The request will be dropped, and nobody is to be found waiting for it from now on.
    pub(crate) fn displace(&mut self) {
        if let Some(slot) = &mut self.0 {
            slot.displace();
        }
    }

    /// Drops it without telling anybody: the asker has the request back.
    pub(crate) fn withdraw(mut self) {
        self.0 = None;
    }
}

impl<R> Drop for ReplyTo<R> {
    fn drop(&mut self) {
        if let Some(mut slot) = self.0.take() {
            drop(slot.give(Err(AskError::Gone)));
        }
    }
}

impl<R> fmt::Debug for ReplyTo<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReplyTo")
            .field("is_wanted", &self.is_wanted())
            .finish()
    }
}
