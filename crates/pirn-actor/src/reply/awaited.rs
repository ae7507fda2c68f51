//! The side that waits for an answer.

use super::slot::{Asker, Waiter};
use crate::edges::{Over, To, Waits};
use crate::error::AskError;
use crate::identity::current_limit;
use crate::time::Limit;
use core::fmt;
use core::future::{Future, IntoFuture};
use core::pin::Pin;
use core::task::{Context, Poll};
use core::time::Duration;
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
    slot: Asker<R>,
    /// Who gives the answer, if nobody else can.
    asked: Option<To>,
}

impl<R> Reply<R> {
    pub(super) const fn new(slot: Asker<R>, asked: Option<To>) -> Reply<R> {
        Reply { slot, asked }
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
        self.slot.take().ok_or(self)
    }

    pub(crate) fn recv_within(mut self, limit: Limit) -> Result<R, AskError> {
        let mut over = Over::default();
        let waiter = || {
            over = Self::over(&self.asked);
            Waiter::Thread(over.clone())
        };
        if let Some(answer) = self.slot.take_or_wait(waiter) {
            return in_time(answer, limit);
        }
        let _waits = self.begin_wait(limit, &over)?;
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

    /// The running thread is about to wait for the answer, in a way of its own.
    pub(crate) fn waits(&mut self, limit: Limit) -> Result<Option<Waits>, AskError> {
        let over = Self::over(&self.asked);
        self.slot.watch(Waiter::Thread(over.clone()));
        self.begin_wait(limit, &over)
    }

    /// Makes what says that the wait is over, if a thread looks at that.
    fn over(asked: &Option<To>) -> Over {
        asked.as_ref().map_or_else(Over::default, |_| Over::new())
    }

    fn begin_wait(&self, limit: Limit, over: &Over) -> Result<Option<Waits>, AskError> {
        let asked = self.asked.as_ref();
        let waits = asked.map(|asked| Waits::begin(asked, limit, over));
        waits.transpose().map_err(AskError::Deadlock)
    }
}

/// A request that is gone after its time has not been handled because of that, most likely: actors
/// skip it when they come to it.
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
        match self.0.slot.take_or_wait(waiter) {
            Some(answer) => Poll::Ready(answer),
            None => Poll::Pending,
        }
    }
}
