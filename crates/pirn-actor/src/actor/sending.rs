//! Sending and asking: from a message to a parcel in the mailbox.

use super::cell::Cell;
use super::context::Context;
use super::handle::{Asked, Code, Handle, Query, Told, Tracked};
use super::wait::ForRoom;
use crate::edges::To;
use crate::envelope::{Envelope, Parcel};
use crate::error::{AskError, Refusal, SendError};
use crate::mailbox::Then;
use crate::reply::{self, Reply};
use crate::time::Limit;
use crate::time::timers::Handled;

/// What a push returns.
type Pushed<T> = Result<(Then, Option<T>), (Refusal, T)>;

/// Whether a sender waits for room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Patience {
    None,
    Until(Limit),
    /// It does not have to: its message goes before all others, and there is always room.
    Urgent,
}

impl<S: Send> Cell<S> {
    /// Puts a parcel into the mailbox. It comes back if it is refused.
    pub(super) fn put<P>(&self, parcel: P, patience: Patience) -> Result<(), (Refusal, P)>
    where
        P: Parcel<S, Context<S>> + 'static,
    {
        // SAFETY: it borrows nothing.
        unsafe { self.put_borrowing(parcel, patience) }
    }

    /// Does the same for a parcel that borrows.
    ///
    /// # Safety
    /// What it borrows outlives the actor.
    pub(crate) unsafe fn put_borrowing<P>(
        &self,
        parcel: P,
        patience: Patience,
    ) -> Result<(), (Refusal, P)>
    where
        P: Parcel<S, Context<S>>,
    {
        // SAFETY: the caller's contract: the mailbox is empty when the actor has ended.
        let envelope = unsafe { Envelope::borrowing(parcel) };
        let pushed = match patience {
            Patience::None => self.mailbox.try_push(envelope, Envelope::displace),
            Patience::Urgent => self.mailbox.push_urgent(envelope).map(|then| (then, None)),
            Patience::Until(limit) => {
                let wait = ForRoom {
                    at: &self.identity,
                    limit,
                };
                self.mailbox.push(envelope, Envelope::displace, &wait)
            }
        };
        self.pushed(pushed)
    }

    /// Puts a parcel before all others.
    pub(super) fn put_first<P>(&self, parcel: P) -> Result<(), (Refusal, P)>
    where
        P: Parcel<S, Context<S>> + 'static,
    {
        let pushed = self.mailbox.push_urgent(Envelope::new(parcel));
        self.pushed(pushed.map(|then| (then, None)))
    }

    /// Puts a parcel after all others, whatever the capacity.
    fn put_beyond<P>(&self, parcel: P) -> Result<(), (Refusal, P)>
    where
        P: Parcel<S, Context<S>> + 'static,
    {
        let pushed = self.mailbox.push_beyond(Envelope::new(parcel));
        self.pushed(pushed.map(|then| (then, None)))
    }

    fn pushed<P>(&self, pushed: Pushed<super::Item<S>>) -> Result<(), (Refusal, P)>
    where
        P: Parcel<S, Context<S>>,
    {
        match pushed {
            Ok((then, displaced)) => {
                self.then(then);
                drop(displaced);
                Ok(())
            }
            // SAFETY: what is refused is what was put, which was made of a `P`.
            Err((refusal, envelope)) => Err((refusal, unsafe { envelope.into_parcel() })),
        }
    }

    pub(super) fn tell<M>(&self, message: M, patience: Patience) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        self.put(Told(message), patience)
            .map_err(|(refusal, Told(message))| self.send_error(message, refusal))
    }

    /// Closes the mailbox, with a last message behind all others.
    pub(crate) fn close_with<M>(&self, message: M)
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        // Refused if it is closed already: dropped, outside of the lock.
        if let Ok(then) = self.mailbox.close_with(Envelope::new(Told(message))) {
            self.then(then);
        }
    }

    pub(super) fn tell_first<M>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        self.put_first(Told(message))
            .map_err(|(refusal, Told(message))| self.send_error(message, refusal))
    }

    pub(super) fn tell_beyond<M>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        self.put_beyond(Told(message))
            .map_err(|(refusal, Told(message))| self.send_error(message, refusal))
    }

    pub(super) fn tell_tracked<M>(&self, message: M, handled: Handled) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        self.put_beyond(Tracked { message, handled })
            .map_err(|(refusal, tracked)| self.send_error(tracked.message, refusal))
    }

    /// Asks. The reply can be awaited.
    pub(super) fn request<M>(
        &self,
        message: M,
        limit: Limit,
        patience: Patience,
    ) -> Result<Reply<S::Reply>, SendError<M>>
    where
        S: Handle<M, Reply: 'static>,
        M: Send + 'static,
    {
        let (to, reply) = reply::pair(To::Actor(self.identity.clone()));
        let asked = Asked {
            message,
            reply: to,
            limit,
        };
        match self.put(asked, patience) {
            Ok(()) => Ok(reply),
            Err((refusal, asked)) => {
                asked.reply.withdraw();
                Err(self.send_error(asked.message, refusal))
            }
        }
    }

    /// Asks, and waits for the answer, within one time limit.
    pub(super) fn ask_within<M>(&self, message: M, limit: Limit) -> Result<S::Reply, AskError>
    where
        S: Handle<M, Reply: 'static>,
        M: Send + 'static,
    {
        self.request(message, limit, Patience::Until(limit))
            .map_err(SendError::into_ask_error)?
            .recv_within(limit)
    }

    pub(super) fn run_later<F, R>(&self, code: F, limit: Limit) -> Result<Reply<R>, AskError>
    where
        F: FnOnce(&mut S) -> R + Send + 'static,
        R: Send + 'static,
    {
        let (to, reply) = reply::pair(To::Actor(self.identity.clone()));
        let query = Query {
            code,
            reply: to,
            limit,
        };
        match self.put(query, Patience::Until(limit)) {
            Ok(()) => Ok(reply),
            Err((refusal, query)) => {
                query.reply.withdraw();
                Err(self.send_error((), refusal).into_ask_error())
            }
        }
    }

    pub(super) fn run_detached<F>(&self, code: F) -> Result<(), SendError<F>>
    where
        F: FnOnce(&mut S) + Send + 'static,
    {
        let limit = crate::identity::current_limit();
        self.put(Code(code), Patience::Until(limit))
            .map_err(|(refusal, Code(code))| self.send_error(code, refusal))
    }

    pub(crate) fn send_error<M>(&self, message: M, refusal: Refusal) -> SendError<M> {
        SendError::new(message, self.identity.name(), refusal)
    }

    /// Puts several messages with nothing between them, or none of them.
    pub(super) fn tell_all<M>(&self, messages: Vec<M>) -> Result<(), SendError<Vec<M>>>
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        let envelopes: Vec<super::Item<S>> = messages
            .into_iter()
            .map(|message| Envelope::new(Told(message)))
            .collect();
        match self.mailbox.try_push_all(envelopes) {
            Ok(then) => {
                self.then(then);
                Ok(())
            }
            Err((refusal, envelopes)) => {
                let back = |envelope: super::Item<S>| {
                    // SAFETY: each was made of a `Told<M>`, above.
                    let Told(message) = unsafe { envelope.into_parcel() };
                    message
                };
                let messages = envelopes.into_iter().map(back).collect();
                Err(self.send_error(messages, refusal))
            }
        }
    }
}
