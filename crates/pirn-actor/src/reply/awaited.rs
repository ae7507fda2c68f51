//! The side that waits for an answer.

use super::slot::{Slot, Waiter};
use crate::edges::Waits;
use crate::error::AskError;
use crate::identity::{Identity, current_limit};
use crate::time::Limit;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
use pirn::thread;
use std::sync::Arc;
use std::time::Instant;

/// An answer that is on its way.
///
/// A request whose reply is dropped before the actor has come to it is not handled: nobody waits
/// for the result. Use `send` for what shall be done in any case.
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
    slot: Option<Arc<Slot<R>>>,
    /// The actor that gives the answer, if only one can.
    asked: Option<Identity>,
}

impl<R> Reply<R> {
    pub(super) fn new(slot: Arc<Slot<R>>, asked: Identity) -> Reply<R> {
        Reply {
            slot: Some(slot),
            asked: Some(asked),
        }
    }

    pub(super) fn of_anybody(slot: Arc<Slot<R>>) -> Reply<R> {
        Reply {
            slot: Some(slot),
            asked: None,
        }
    }

    /// Waits for the answer.
    ///
    /// # Errors
    /// See [`AskError`]. An actor whose handler has a deadline waits no longer than that.
    pub fn recv(self) -> Result<R, AskError> {
        self.recv_within(current_limit())
    }

    /// Waits for the answer, for as long as `timeout`.
    ///
    /// # Errors
    /// See [`AskError`]. After the time limit the request is abandoned.
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

    /// Returns the answer if it is there, or this reply again.
    pub fn try_recv(mut self) -> Result<Result<R, AskError>, Reply<R>> {
        match self.slot().take() {
            Some(answer) => {
                self.slot = None;
                Ok(answer)
            }
            None => Err(self),
        }
    }

    pub(crate) fn recv_within(mut self, limit: Limit) -> Result<R, AskError> {
        let waiter = || Waiter::Thread(thread::current());
        if let Some(answer) = self.slot().take_or_wait(waiter) {
            self.slot = None;
            return in_time(answer, limit);
        }
        let _waits = self.waits(limit)?;
        loop {
            let late = limit.park().err();
            if let Some(answer) = self.slot().take() {
                self.slot = None;
                return in_time(answer, limit);
            }
            if let Some(late) = late {
                return Err(late.into());
            }
        }
    }

    /// The running thread is about to wait for the answer, in a way of its own.
    pub(crate) fn waits(&self, limit: Limit) -> Result<Option<Waits>, AskError> {
        let asked = self.asked.as_ref();
        let waits = asked.map(|asked| Waits::for_actor(asked, limit));
        waits.transpose().map_err(AskError::Deadlock)
    }

    fn slot(&self) -> &Slot<R> {
        self.slot.as_ref().expect("it is given up with the reply")
    }
}

/// A request is dropped if its time is up. Its asker may not have seen that yet.
fn in_time<R>(answer: Result<R, AskError>, limit: Limit) -> Result<R, AskError> {
    match answer {
        Err(AskError::Gone) if limit.is_past() => Err(AskError::TimedOut),
        answer => answer,
    }
}

impl<R> Drop for Reply<R> {
    fn drop(&mut self) {
        if let Some(slot) = &self.slot {
            slot.abandon();
        }
    }
}

impl<R> fmt::Debug for Reply<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply")
            .field("asked", &self.asked)
            .finish_non_exhaustive()
    }
}

impl<R> IntoFuture for Reply<R> {
    type Output = Result<R, AskError>;
    type IntoFuture = ReplyFuture<R>;

    fn into_future(self) -> ReplyFuture<R> {
        ReplyFuture(self)
    }
}

/// A [`Reply`] that async code waits for.
#[must_use = "a request whose reply is dropped may not be handled"]
#[derive(Debug)]
pub struct ReplyFuture<R>(Reply<R>);

impl<R> Future for ReplyFuture<R> {
    type Output = Result<R, AskError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let waiter = || Waiter::Task(context.waker().clone());
        match self.0.slot().take_or_wait(waiter) {
            Some(answer) => {
                self.0.slot = None;
                Poll::Ready(answer)
            }
            None => Poll::Pending,
        }
    }
}
