//! Messages whose answers go on, in place of back to a sender: to the next stage of a pipeline.
//!
//! The actor that has made an answer hands it on itself, between two messages. So it waits for room
//! at the next stage as a handler would that sends, and its own mailbox fills meanwhile.

use super::cell::Cell;
use super::context::Context;
use super::handle::Handle;
use super::sending::Patience;
use crate::envelope::Parcel;
use crate::error::{AskError, Failure, Refusal, SendError, short_name};
use crate::identity::while_handling;
use crate::reply::ReplyTo;
use crate::time::Limit;
use pirn::thread::Panic;

/// Where an answer goes. One that is dropped tells an asker that the request is gone.
pub(crate) trait Onward<R>: Send {
    /// Returns false if the asker does not wait any more.
    fn is_wanted(&self) -> bool;

    /// Returns true if there is an asker, which is told of errors.
    fn is_asked(&self) -> bool;

    /// The message is going to be dropped: an asker is told.
    fn displace(&mut self) {}

    /// The message comes to the next stage.
    fn note_joint(&self) {}

    /// Takes the answer. Returns false if it has nowhere to go and nobody hears of that.
    fn take(self: Box<Self>, answer: Result<R, AskError>) -> bool;
}

impl<R: Send> Onward<R> for ReplyTo<R> {
    fn is_wanted(&self) -> bool {
        ReplyTo::is_wanted(self)
    }

    fn is_asked(&self) -> bool {
        true
    }

    fn displace(&mut self) {
        ReplyTo::displace(self);
    }

    fn take(self: Box<Self>, answer: Result<R, AskError>) -> bool {
        self.give(answer);
        true
    }
}

/// The end of the way of a message that was sent: the last answer is dropped.
struct Nobody;

impl<R> Onward<R> for Nobody {
    fn is_wanted(&self) -> bool {
        true
    }

    fn is_asked(&self) -> bool {
        false
    }

    fn take(self: Box<Self>, answer: Result<R, AskError>) -> bool {
        answer.is_ok()
    }
}

/// A message whose answer goes on.
pub(crate) struct Passed<M, R> {
    pub(crate) message: M,
    pub(crate) onward: Box<dyn Onward<R>>,
    /// The time until which an asker waits.
    pub(crate) limit: Limit,
}

impl<M, R> Passed<M, R> {
    pub(crate) fn told(message: M) -> Passed<M, R> {
        Passed {
            message,
            onward: Box::new(Nobody),
            limit: Limit::NEVER,
        }
    }

    pub(crate) fn asked(message: M, reply: ReplyTo<R>, limit: Limit) -> Passed<M, R>
    where
        R: Send + 'static,
    {
        Passed {
            message,
            onward: Box::new(reply),
            limit,
        }
    }

    /// Returns false if nobody waits for the answer any more.
    pub(crate) fn is_wanted(&self) -> bool {
        self.onward.is_wanted() && !self.limit.is_past()
    }

    /// Tells those who wait for the answer that there is none, and returns the message.
    pub(crate) fn refused(self, refusal: Refusal) -> M {
        let error = match refusal {
            // Who hands it on was interrupted. An asker who was has it from its own wait.
            Refusal::Interrupted => AskError::Gone,
            refusal => refusal.into(),
        };
        self.onward.take(Err(error));
        self.message
    }
}

impl<S, M, R> Parcel<S, Context<S>> for Passed<M, R>
where
    S: Handle<M, Reply = R> + Send,
    M: Send,
    R: Send,
{
    fn deliver(self, state: &mut S, context: &Context<S>) {
        let Passed {
            message,
            onward,
            limit,
        } = self;
        let handle = || while_handling::<M, _>(|| state.handle(message, context));
        match Panic::catch(|| limit.hold_during(handle)) {
            Ok(answer) => {
                if !onward.take(Ok(answer)) {
                    context.cell().undelivered(short_name::<R>());
                }
            }
            Err(panic) => {
                onward.take(Err(AskError::Failed(Failure::from(&panic))));
                panic.resume();
            }
        }
    }

    fn is_wanted(&self) -> bool {
        Passed::is_wanted(self)
    }

    fn displace(&mut self) {
        self.onward.displace();
    }
}

impl<S: Send> Cell<S> {
    /// Puts a message whose answer goes on.
    pub(super) fn pass<M, R>(
        &self,
        passed: Passed<M, R>,
        patience: Patience,
    ) -> Result<(), SendError<M>>
    where
        S: Handle<M, Reply = R>,
        M: Send + 'static,
        R: Send + 'static,
    {
        self.put(passed, patience).map_err(|(refusal, passed)| {
            let message = passed.refused(refusal.clone());
            self.send_error(message, refusal)
        })
    }

    /// Tells of a message that was taken and reaches nobody.
    fn undelivered(&self, name: &str) {
        if let Some(tell) = self
            .options
            .rare
            .as_deref()
            .and_then(|rare| rare.on_undelivered.as_ref())
        {
            // It may panic. The hook has reported that, and the actor has done its work.
            let _ = Panic::catch(|| tell(name));
        }
    }
}
