//! Sending and asking: the sender wraps a message into a parcel, and the actor handles it.
//!
//! ```text
//!   send     -> Told     message                            the answer is dropped
//!   ask      -> Asked    message, reply, time limit         the answer goes to the asker
//!   run      -> Query    code, reply, time limit            the code's result goes to the asker
//!   pipeline -> Passed   message, onward, time limit        the answer goes on (`passing.rs`)
//! ```

use super::cell::{ActorCell, Item};
use super::handler::Context;
use super::handler::Handler;
use super::passing::Passed;
use crate::edges::To;
use crate::envelope::{Envelope, Parcel};
use crate::error::{AskError, Failure, Refusal, SendError, short_name};
use crate::identity::{current_limit, while_handling};
use crate::life::Actor;
use crate::mailbox::Patience;
use crate::reply::{self, Reply, ReplyTo};
use crate::time::Limit;
use pirn::thread::Panic;

/// A receiver of parcels: an actor, or a pool of actors, with states of one type.
pub(crate) trait Put: Actor {
    type State: Send;
    /// Data about a message that is computed before the message is put.
    type Tag;

    fn tag<M: 'static>(&self, message: &M) -> Self::Tag;

    /// Returns the target of an asker's wait.
    fn to(&self) -> To;

    /// Puts a parcel. Returns it if it is refused.
    fn put<P>(&self, parcel: P, tag: Self::Tag, patience: Patience) -> Result<(), (Refusal, P)>
    where
        P: Parcel<Self::State, Context<Self::State>> + 'static;

    fn refused<M>(&self, message: M, refusal: Refusal) -> SendError<M> {
        SendError::new(message, self.identity().name(), refusal)
    }

    fn send<M>(&self, message: M, patience: Patience) -> Result<(), SendError<M>>
    where
        Self::State: Handler<M>,
        M: Send + 'static,
    {
        let tag = self.tag(&message);
        self.put(Told(Message(message)), tag, patience)
            .map_err(|(refusal, Told(Message(message)))| self.refused(message, refusal))
    }

    /// Has a job done, and returns a reply with its result. Waits for room until `limit`.
    fn request_job<J>(
        &self,
        job: J,
        tag: Self::Tag,
        limit: Limit,
    ) -> Result<Reply<J::Output>, (Refusal, J)>
    where
        J: Job<Self::State, Output: 'static> + 'static,
    {
        let (reply, awaited) = reply::pair(Some(self.to()));
        let asked = Asked { job, reply, limit };
        match self.put(asked, tag, Patience::Until(limit)) {
            Ok(()) => Ok(awaited),
            Err((refusal, asked)) => Err((refusal, asked.withdraw())),
        }
    }

    /// Asks, and returns a reply that can be awaited. Waits for room until `limit`.
    fn request<M>(
        &self,
        message: M,
        limit: Limit,
    ) -> Result<Reply<<Self::State as Handler<M>>::Reply>, SendError<M>>
    where
        Self::State: Handler<M, Reply: 'static>,
        M: Send + 'static,
    {
        let tag = self.tag(&message);
        self.request_job(Message(message), tag, limit)
            .map_err(|(refusal, Message(message))| self.refused(message, refusal))
    }

    /// Asks, and waits for the answer, within one time limit.
    fn ask<M>(
        &self,
        message: M,
        limit: Limit,
    ) -> Result<<Self::State as Handler<M>>::Reply, AskError>
    where
        Self::State: Handler<M, Reply: 'static>,
        M: Send + 'static,
    {
        self.request(message, limit)
            .map_err(SendError::into_ask_error)?
            .recv_within(limit)
    }
}

impl<S: Send> ActorCell<S> {
    /// Puts a parcel that may borrow into the mailbox. Returns it if it is refused.
    ///
    /// # Safety
    /// The parcel borrows nothing that does not outlive the actor.
    pub(crate) unsafe fn put_borrowing<P>(
        &self,
        parcel: P,
        patience: Patience,
    ) -> Result<(), (Refusal, P)>
    where
        P: Parcel<S, Context<S>>,
    {
        // SAFETY: the caller's contract: all envelopes are dropped when the actor has ended.
        let envelope = unsafe { Envelope::borrowing(parcel) };
        let at = &self.life.identity;
        match self
            .mailbox
            .push(envelope, patience, at, Envelope::displace)
        {
            Ok((then, displaced)) => {
                self.then(then);
                drop(displaced);
                Ok(())
            }
            // SAFETY: a refused envelope is the one that was put, which was made of a `P`.
            Err((refusal, envelope)) => Err((refusal, unsafe { envelope.into_parcel() })),
        }
    }
}

impl<S: Send + 'static> Put for ActorCell<S> {
    type State = S;
    type Tag = ();

    fn tag<M: 'static>(&self, _: &M) {}

    fn to(&self) -> To {
        ActorCell::to(self)
    }

    fn put<P>(&self, parcel: P, (): (), patience: Patience) -> Result<(), (Refusal, P)>
    where
        P: Parcel<S, Context<S>> + 'static,
    {
        // SAFETY: the parcel is `'static`: it borrows nothing.
        unsafe { self.put_borrowing(parcel, patience) }
    }
}

impl<S: Send + 'static> ActorCell<S> {
    pub(super) fn run_later<F, R>(&self, code: F, limit: Limit) -> Result<Reply<R>, AskError>
    where
        F: FnOnce(&mut S) -> R + Send + 'static,
        R: Send + 'static,
    {
        self.request_job(Code(code), (), limit)
            .map_err(|(refusal, _)| refusal.into())
    }

    pub(super) fn run_detached<F>(&self, code: F) -> Result<(), SendError<F>>
    where
        F: FnOnce(&mut S) + Send + 'static,
    {
        self.put(Told(Code(code)), (), Patience::Until(current_limit()))
            .map_err(|(refusal, Told(Code(code)))| self.refused(code, refusal))
    }

    /// Puts several messages with nothing between them, or none of them.
    pub(super) fn send_all<M>(&self, messages: Vec<M>) -> Result<(), SendError<Vec<M>>>
    where
        S: Handler<M>,
        M: Send + 'static,
    {
        let envelope = |message| Envelope::new(Told(Message(message)));
        let envelopes: Vec<Item<S>> = messages.into_iter().map(envelope).collect();
        match self.mailbox.try_push_all(envelopes) {
            Ok(then) => {
                self.then(then);
                Ok(())
            }
            Err((refusal, envelopes)) => {
                let back = |envelope: Item<S>| {
                    // SAFETY: each was made of a `Told<Message<M>>`, above.
                    let Told(Message(message)) = unsafe { envelope.into_parcel() };
                    message
                };
                Err(self.refused(envelopes.into_iter().map(back).collect(), refusal))
            }
        }
    }
}

/// An actor, for senders of messages of the type `M` that may get answers of the type `R`.
pub(crate) trait Receive<M, R>: Actor {
    /// Puts a message whose answer goes on. If it is refused, the asker that waits for the answer
    /// is told, too.
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>>;

    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        self.pass(Passed::told(message), patience)
    }

    /// Asks, with the same limit for the wait for room and for the answer.
    fn request(&self, message: M, limit: Limit) -> Result<Reply<R>, SendError<M>>;

    /// Adds the stages of this receiver, in order: the actors whose work an answer needs.
    fn stages(&self, stages: &mut Vec<To>) {
        stages.push(To::Actor(self.identity().clone()));
    }
}

impl<A, M, R> Receive<M, R> for A
where
    A: Put,
    A::State: Handler<M, Reply = R>,
    M: Send + 'static,
    R: Send + 'static,
{
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>> {
        let tag = self.tag(&passed.message);
        self.put(passed, tag, patience)
            .map_err(|(refusal, passed)| passed.refused(refusal, self.identity()))
    }

    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        Put::send(self, message, patience)
    }

    fn request(&self, message: M, limit: Limit) -> Result<Reply<R>, SendError<M>> {
        Put::request(self, message, limit)
    }

    fn stages(&self, stages: &mut Vec<To>) {
        stages.push(self.to());
    }
}

/// Work for an actor with the state `S`.
pub(crate) trait Job<S>: Send {
    type Output: Send;

    fn run(self, state: &mut S, context: &Context<S>) -> Self::Output;

    /// Returns the name of the message's type.
    fn name() -> &'static str;
}

/// A message, for the actor's handler.
pub(crate) struct Message<M>(pub(crate) M);

impl<S: Handler<M>, M: Send> Job<S> for Message<M> {
    type Output = S::Reply;

    #[inline]
    fn run(self, state: &mut S, context: &Context<S>) -> S::Reply {
        while_handling::<M, _>(|| state.handle(self.0, context))
    }

    fn name() -> &'static str {
        short_name::<M>()
    }
}

/// Code in place of a message.
pub(crate) struct Code<F>(F);

impl<S, F: FnOnce(&mut S) -> R + Send, R: Send> Job<S> for Code<F> {
    type Output = R;

    #[inline]
    fn run(self, state: &mut S, _: &Context<S>) -> R {
        (self.0)(state)
    }

    fn name() -> &'static str {
        "code"
    }
}

/// A job without an asker.
pub(crate) struct Told<J>(pub(crate) J);

impl<S, J: Job<S>> Parcel<S, Context<S>> for Told<J> {
    fn deliver(self, state: &mut S, context: &Context<S>) {
        drop(self.0.run(state, context));
    }

    fn name() -> &'static str {
        J::name()
    }
}

/// A job with an asker.
pub(crate) struct Asked<J, R> {
    pub(crate) job: J,
    pub(crate) reply: ReplyTo<R>,
    /// The time until which the asker waits.
    pub(crate) limit: Limit,
}

impl<J, R> Asked<J, R> {
    /// Returns the job of a request that was refused, and tells the asker nothing.
    pub(crate) fn withdraw(self) -> J {
        self.reply.withdraw();
        self.job
    }
}

impl<S, J: Job<S, Output = R>, R: Send> Parcel<S, Context<S>> for Asked<J, R> {
    #[inline]
    fn deliver(self, state: &mut S, context: &Context<S>) {
        let Asked { job, reply, limit } = self;
        match Panic::catch(|| limit.hold_during(|| job.run(state, context))) {
            // The state is whole. Only program code panics here: the asker's waker, or the drop of
            // an answer that no asker waits for.
            Ok(value) => drop(Panic::catch(|| reply.send(value))),
            // The asker learns of the failure before the actor ends.
            Err(panic) => {
                reply.give(Err(AskError::Failed(Failure::from(&panic))));
                panic.resume();
            }
        }
    }

    fn name() -> &'static str {
        J::name()
    }

    fn is_wanted(&self) -> bool {
        self.reply.is_wanted() && !self.limit.is_past()
    }

    fn displace(&mut self) {
        self.reply.displace();
    }
}
