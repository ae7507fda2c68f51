//! A message that is inside, with the receiver of its answer, if it has one.

use crate::actor::{Onward, Passed};
use crate::error::{AskError, Failure, Refusal, SendError, discard};
use crate::identity::{Identity, while_handling};
use crate::reply::ReplyTo;
use crate::time::Limit;
use pirn::thread::Panic;

pub(super) struct Job<M, R> {
    message: M,
    to: To<R>,
    /// The time until which an asker waits.
    limit: Limit,
}

/// The receiver of the answer.
enum To<R> {
    Nobody,
    Asker(ReplyTo<R>),
    /// The next stage of a pipeline.
    Onward(Box<dyn Onward<R>>),
}

impl<R> To<R> {
    fn is_wanted(&self) -> bool {
        match self {
            To::Nobody => true,
            To::Asker(reply) => reply.is_wanted(),
            To::Onward(onward) => onward.is_wanted(),
        }
    }

    fn give(self, answer: Result<R, AskError>) {
        match self {
            To::Nobody => drop(answer),
            To::Asker(reply) => reply.give(answer),
            To::Onward(onward) => drop(onward.take(answer)),
        }
    }
}

impl<M, R> Job<M, R> {
    pub(super) fn told(message: M) -> Job<M, R> {
        Job {
            message,
            to: To::Nobody,
            limit: Limit::NEVER,
        }
    }

    pub(super) fn asked(message: M, reply: ReplyTo<R>, limit: Limit) -> Job<M, R> {
        Job {
            message,
            to: To::Asker(reply),
            limit,
        }
    }

    pub(super) fn passed(passed: Passed<M, R>) -> Job<M, R> {
        Job {
            message: passed.message,
            to: To::Onward(passed.onward),
            limit: passed.limit,
        }
    }

    /// Handles the message, unless the asker has given up. Returns a panic of `handle`, and tells
    /// the asker of it.
    pub(super) fn run(self, handle: impl FnOnce(M) -> R) -> Result<(), Failure> {
        let Job { message, to, limit } = self;
        if !to.is_wanted() || limit.is_past() {
            discard((message, to));
            return Ok(());
        }
        let handle = || while_handling::<M, _>(|| handle(message));
        let outcome = Panic::catch(|| limit.hold_during(handle));
        let (answer, result) = match outcome.map_err(|panic| Failure::from(&panic)) {
            Ok(answer) => (Ok(answer), Ok(())),
            Err(failure) => (Err(AskError::Failed(failure.clone())), Err(failure)),
        };
        // The drop of an answer may panic if the asker has given up; so may an asker's waker.
        let _ = Panic::catch(|| to.give(answer));
        result
    }

    /// It has been refused: its sender gets the message again.
    pub(super) fn refused(self, refusal: Refusal, by: &Identity) -> SendError<M> {
        let Job { message, to, limit } = self;
        let message = match to {
            To::Nobody => message,
            To::Asker(reply) => {
                reply.withdraw();
                message
            }
            To::Onward(onward) => {
                let passed = Passed {
                    message,
                    onward,
                    limit,
                };
                passed.refused(refusal.clone())
            }
        };
        SendError::new(message, by.name(), refusal)
    }
}
