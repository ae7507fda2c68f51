//! Answers: the side that gives one, and the side that waits for it. `slot.rs` has the slot between
//! them.

mod slot;
mod word;

use crate::edges::{Over, To, Waits};
use crate::error::{AskError, Failure};
use crate::identity::current_limit;
use crate::time::Limit;
use core::fmt;
use core::future::Future;
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use slot::{Asker, Giver, Waiter};
use std::sync::Arc;
use std::time::Instant;

/// Makes the two sides of an answer that `asked` gives, or any thread if it is `None`.
pub(crate) fn pair<R>(asked: Option<To>) -> (ReplyTo<R>, Reply<R>) {
    let (giver, slot) = slot::sides();
    (ReplyTo(Some(giver)), Reply { slot, asked })
}

/// Makes the two sides of an answer, for code that answers without being an actor: another node, a
/// library of callbacks.
///
/// # Examples
/// ```
/// let (to, reply) = pirn_actor::reply::channel();
/// std::thread::spawn(move || to.send(42));
/// assert_eq!(reply.recv(), Ok(42));
/// ```
pub fn channel<R>() -> (ReplyTo<R>, Reply<R>) {
    pair(None)
}

/// The right and the duty to answer one request.
///
/// If it is dropped, the asker gets [`Gone`](AskError::Gone). So every ask ends.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, AskError};
/// use pirn_actor::process::{Inbox, RecvError};
/// use pirn_actor::reply::ReplyTo;
///
/// enum Order {
///     Tea(u32, ReplyTo<String>),
///     Coffee(ReplyTo<String>),
/// }
/// let bar = actor::process::spawn(|inbox: &mut Inbox<Order>| -> Result<(), RecvError> {
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
    /// Gives the answer, which is dropped if the asker has stopped waiting.
    pub fn send(self, answer: R) {
        self.give(Ok(answer));
    }

    /// Tells the asker that there is no answer, and why: [`AskError::Failed`].
    pub fn fail(self, why: impl Into<Arc<str>>) {
        self.give(Err(AskError::Failed(Failure::new(why))));
    }

    /// Returns false if the asker has stopped waiting for the answer.
    pub fn is_wanted(&self) -> bool {
        self.0.as_ref().is_some_and(|slot| !slot.is_abandoned())
    }

    /// Gives an answer or an error, which is dropped if the asker has stopped waiting.
    pub fn give(mut self, answer: Result<R, AskError>) {
        let mut slot = self.0.take().expect("it is taken once, here or by drop");
        drop(slot.give(answer));
    }

    /// Called before the request is dropped: from now on no search finds the asker waiting for it.
    pub(crate) fn displace(&mut self) {
        if let Some(slot) = &mut self.0 {
            slot.displace();
        }
    }

    /// Drops this without an answer: the asker has the request back.
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

/// An answer that the asker can wait for later.
///
/// The actor does not handle a request whose reply is dropped before it begins the request, since
/// no asker waits for the result. Use `send` for a message that must be handled.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let square = actor::function(|n: u64| n * n);
/// let (three, four) = (square.ask_later(3).unwrap(), square.ask_later(4).unwrap());
/// assert_eq!(three.recv().unwrap() + four.recv().unwrap(), 25);
///
/// let five = square.ask_later(5).unwrap();
/// assert_eq!(pirn::block_on(async { five.await.unwrap() }), 25);
/// ```
#[must_use = "a request whose reply is dropped may not be handled"]
pub struct Reply<R> {
    slot: Asker<R>,
    /// The actor that gives the answer, if no other thread can.
    asked: Option<To>,
}

impl<R> Reply<R> {
    /// Waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`]. In a handler with a deadline, the wait ends then at the latest.
    pub fn recv(self) -> Result<R, AskError> {
        self.recv_within(current_limit())
    }

    /// Waits for the answer, for as long as `timeout`.
    ///
    /// # Errors
    /// See [`AskError`]. After the timeout the request is abandoned.
    pub fn recv_timeout(self, timeout: Duration) -> Result<R, AskError> {
        self.recv_within(Limit::after(timeout).min(current_limit()))
    }

    /// Waits for the answer until `deadline`.
    ///
    /// # Errors
    /// See [`AskError`]. After the deadline the request is abandoned.
    pub fn recv_deadline(self, deadline: Instant) -> Result<R, AskError> {
        self.recv_within(Limit::at(deadline).min(current_limit()))
    }

    /// Returns the answer if it has come, or this reply.
    pub fn try_recv(mut self) -> Result<Result<R, AskError>, Reply<R>> {
        self.slot.take().ok_or(self)
    }

    pub(crate) fn recv_within(mut self, limit: Limit) -> Result<R, AskError> {
        // The mark that ends the wait's edge, if the wait has one.
        let mut over = Over::default();
        let waiter = || {
            if self.asked.is_some() {
                over = Over::new();
            }
            Waiter::Thread(over.clone())
        };
        if let Some(answer) = self.slot.take_or_wait(waiter) {
            return in_time(answer, limit);
        }
        let asked = self.asked.as_ref();
        let waits = asked.map(|asked| Waits::begin(asked, limit, &over));
        let _waits = waits.transpose().map_err(AskError::Deadlock)?;
        loop {
            let late = self.slot.wait(limit).err();
            if let Some(answer) = self.slot.take() {
                return in_time(answer, limit);
            }
            if let Some(late) = late {
                return Err(late.into());
            }
        }
    }
}

/// Maps `Gone` after the time limit to `TimedOut`: most likely the actor has skipped the request
/// because its time was over.
fn in_time<R>(answer: Result<R, AskError>, limit: Limit) -> Result<R, AskError> {
    match answer {
        Err(AskError::Gone) if limit.is_past() => Err(AskError::TimedOut),
        answer => answer,
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

/// Async code awaits the answer.
impl<R> Future for Reply<R> {
    type Output = Result<R, AskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waiter = || Waiter::Task(context.waker().clone());
        match self.slot.take_or_wait(waiter) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}
