//! A message that is inside: with its asker, if there is one.

use crate::actor::{answer, discard};
use crate::error::{Failure, Refusal, SendError};
use crate::identity::{Identity, Within};
use crate::reply::ReplyTo;
use crate::time::Limit;
use std::panic::{AssertUnwindSafe, catch_unwind};

pub(super) struct Job<M, R> {
    message: M,
    asker: Option<(ReplyTo<R>, Limit)>,
}

impl<M, R> Job<M, R> {
    pub(super) fn told(message: M) -> Job<M, R> {
        Job {
            message,
            asker: None,
        }
    }

    pub(super) fn asked(message: M, reply: ReplyTo<R>, limit: Limit) -> Job<M, R> {
        Job {
            message,
            asker: Some((reply, limit)),
        }
    }

    /// Handles the message, unless nobody waits for the answer any more. Its panic is returned, and
    /// told to the asker.
    pub(super) fn run(self, handle: impl FnOnce(M) -> R) -> Result<(), Failure> {
        let Job { message, asker } = self;
        let outcome = match asker {
            None => catch_unwind(AssertUnwindSafe(|| drop(handle(message)))),
            Some((reply, limit)) if !reply.is_wanted() || limit.is_past() => {
                discard((message, reply));
                return Ok(());
            }
            Some((reply, limit)) => catch_unwind(AssertUnwindSafe(|| {
                let _within = limit.instant().map(|_| Within::limit(limit));
                answer(reply, || handle(message));
            })),
        };
        outcome.map_err(|payload| {
            let (failure, payload) = Failure::of_panic(payload);
            discard(payload);
            failure
        })
    }

    /// It has been refused: its sender gets the message again.
    pub(super) fn refused(self, refusal: Refusal, by: &Identity) -> SendError<M> {
        if let Some((reply, _)) = self.asker {
            reply.withdraw();
        }
        SendError::new(self.message, by.name(), refusal)
    }
}
