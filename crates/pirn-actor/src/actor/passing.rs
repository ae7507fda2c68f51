//! Messages whose answers do not go back to the sender, but to the next stage of a pipeline, for
//! instance.
//!
//! The actor that has made an answer hands it on itself, between two messages. So it waits for room
//! at the next stage as a handler that sends does, and its own mailbox fills meanwhile.

use super::cell::{OnUndelivered, on_undelivered, tell_undelivered};
use super::handler::Context;
use super::handler::Handler;
use crate::edges::Way;
use crate::envelope::Parcel;
use crate::error::{AskError, Failure, Refusal, SendError, discard, short_name};
use crate::identity::{Identity, while_handling};
use crate::reply::ReplyTo;
use crate::time::Limit;
use crate::time::timers::Handled;
use pirn::thread::Panic;
use std::sync::Arc;

/// The receiver of an answer. If it is dropped without one, it tells the asker that the request is
/// gone.
pub(crate) trait Onward<R>: Send {
    /// Returns false if the asker has stopped waiting.
    fn is_wanted(&self) -> bool {
        true
    }

    /// Returns true if there is an asker to tell of errors.
    fn is_asked(&self) -> bool {
        false
    }

    /// Called before the message is dropped: tells the asker.
    fn displace(&mut self) {}

    /// Called when the message moves on to the next stage.
    fn note_joint(&self) {}

    /// Takes the answer. Returns false if the answer is lost and no asker learns of that.
    fn take(self: Box<Self>, answer: Result<R, AskError>) -> bool;
}

/// An asker, and the way of its message through a pipeline.
struct Asker<R> {
    reply: ReplyTo<R>,
    way: Option<Arc<Way>>,
}

impl<R: Send> Onward<R> for Asker<R> {
    fn is_wanted(&self) -> bool {
        self.reply.is_wanted()
    }

    fn is_asked(&self) -> bool {
        true
    }

    fn displace(&mut self) {
        self.reply.displace();
    }

    fn note_joint(&self) {
        if let Some(way) = &self.way {
            way.pass();
        }
    }

    fn take(self: Box<Self>, answer: Result<R, AskError>) -> bool {
        self.reply.give(answer);
        true
    }
}

/// Drops the answer: the message was sent, not asked.
struct Dropped;

impl<R> Onward<R> for Dropped {
    fn take(self: Box<Self>, answer: Result<R, AskError>) -> bool {
        answer.is_ok()
    }
}

/// Drops the answer to a timer's message. The timer learns that the message was handled.
impl<R> Onward<R> for Handled {
    fn take(self: Box<Self>, _: Result<R, AskError>) -> bool {
        true
    }
}

/// A message with the receiver of its answer.
pub(crate) struct Passed<M, R> {
    pub(crate) message: M,
    pub(crate) onward: Box<dyn Onward<R>>,
    /// The time until which an asker waits.
    pub(crate) limit: Limit,
}

impl<M, R> Passed<M, R> {
    pub(crate) fn new(message: M, onward: impl Onward<R> + 'static, limit: Limit) -> Passed<M, R> {
        let onward = Box::new(onward);
        Passed {
            message,
            onward,
            limit,
        }
    }

    pub(crate) fn told(message: M) -> Passed<M, R> {
        Passed::new(message, Dropped, Limit::NEVER)
    }

    pub(crate) fn asked(
        message: M,
        reply: ReplyTo<R>,
        way: Option<Arc<Way>>,
        limit: Limit,
    ) -> Passed<M, R>
    where
        R: Send + 'static,
    {
        Passed::new(message, Asker { reply, way }, limit)
    }

    /// Returns false if the asker has stopped waiting.
    pub(crate) fn is_wanted(&self) -> bool {
        self.onward.is_wanted() && !self.limit.is_past()
    }

    /// Tells the asker that there is no answer, and gives the message back to its sender.
    pub(crate) fn refused(self, refusal: Refusal, by: &Identity) -> SendError<M> {
        let error = match refusal.clone() {
            // The thread that hands the message on was interrupted. An asker sees its own interrupt
            // in its own wait.
            Refusal::Interrupted => AskError::Gone,
            refusal => refusal.into(),
        };
        self.onward.take(Err(error));
        SendError::new(self.message, by.name(), refusal)
    }

    /// Handles the message, unless its asker has given up, and hands the answer on. Calls
    /// `on_undelivered` for an answer that is lost. Returns a panic of `handle`.
    pub(crate) fn run(
        self,
        handle: impl FnOnce(M) -> R,
        on_undelivered: Option<&OnUndelivered>,
    ) -> Result<(), Panic> {
        if !self.is_wanted() {
            discard(self);
            return Ok(());
        }
        let Passed {
            message,
            onward,
            limit,
        } = self;
        let handle = || while_handling::<M, _>(|| handle(message));
        let outcome = Panic::catch(|| limit.hold_during(handle));
        let failure = |panic: &Panic| AskError::Failed(Failure::from(panic));
        let (answer, result) = match outcome {
            Ok(answer) => (Ok(answer), Ok(())),
            Err(panic) => (Err(failure(&panic)), Err(panic)),
        };
        let is_answer = answer.is_ok();
        // Only program code panics here: the drop of an answer that no asker waits for, or an
        // asker's waker.
        let is_taken = Panic::catch(|| onward.take(answer)).unwrap_or(true);
        if is_answer && !is_taken {
            tell_undelivered(on_undelivered, short_name::<R>());
        }
        result
    }
}

impl<S, M, R> Parcel<S, Context<S>> for Passed<M, R>
where
    S: Handler<M, Reply = R> + Send,
    M: Send,
    R: Send,
{
    fn deliver(self, state: &mut S, context: &Context<S>) {
        let on_undelivered = on_undelivered(&context.cell().options);
        let outcome = self.run(|message| state.handle(message, context), on_undelivered);
        outcome.unwrap_or_else(|panic| panic.resume());
    }

    fn name() -> &'static str {
        short_name::<M>()
    }

    fn is_wanted(&self) -> bool {
        Passed::is_wanted(self)
    }

    fn displace(&mut self) {
        self.onward.displace();
    }
}
