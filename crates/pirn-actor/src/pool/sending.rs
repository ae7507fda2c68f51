//! Sending to a pool, and asking it.

use super::crew::{Crew, Deferred};
use super::ready::Entry;
use super::rules::Tag;
use crate::actor::{Asked, Context, Ending, Handle, Item, Mortal, Passed, Patience, Receive, Told};
use crate::edges::{To, Waits};
use crate::envelope::{Envelope, Parcel};
use crate::error::{Refusal, SendError};
use crate::identity::Identity;
use crate::mailbox::{Overflow, Phase};
use crate::reply::{self, Reply};
use crate::time::Limit;

/// What a sender gets back.
type Put<T> = Result<(), (Refusal, T)>;

impl<S: Send + 'static> Crew<S> {
    /// Puts an item. If the pool is full, waits for room, or does what [`Overflow`] says.
    fn push(&self, entry: Entry<Item<S>>, patience: Patience) -> Put<Item<S>> {
        let mut shared = self.lock();
        if shared.phase != Phase::Open {
            return Err((Refusal::Closed, entry.item));
        }
        let mut displaced = None;
        if shared.ready.waiting() >= self.capacity || !shared.line.is_empty() {
            match (self.overflow, patience) {
                (Overflow::Wait, Patience::Until(limit)) => {
                    drop(shared);
                    return self.wait_for_room(entry, limit);
                }
                (Overflow::Wait | Overflow::Fail, _) => return Err((Refusal::Full, entry.item)),
                (Overflow::DropNew, _) => {
                    drop(shared);
                    drop(entry);
                    return Ok(());
                }
                (Overflow::DropOld, _) => {
                    displaced = shared.ready.pop_oldest();
                    displaced.as_mut().map(Envelope::displace);
                }
                (Overflow::Stop, _) => {
                    drop(shared);
                    self.end(Phase::Overflowing);
                    return Err((Refusal::Closed, entry.item));
                }
            }
        }
        shared.ready.push(entry, false);
        let deferred = self.staff(&mut shared);
        drop(shared);
        self.perform(deferred);
        drop(displaced);
        Ok(())
    }

    /// A thread that waits for the pool waits for any of its workers.
    fn to(&self) -> To {
        To::AnyOf(self.arc())
    }

    fn wait_for_room(&self, entry: Entry<Item<S>>, limit: Limit) -> Put<Item<S>> {
        let (ticket, deferred) = {
            let mut shared = self.lock();
            if shared.phase != Phase::Open {
                return Err((Refusal::Closed, entry.item));
            }
            let ticket = shared.line.enter(entry);
            self.admit(&mut shared);
            (ticket, self.staff(&mut shared))
        };
        self.perform(deferred);
        let refusal = match Waits::begin(&self.to(), limit, ticket.over()) {
            Ok(_waits) => ticket.wait(limit),
            Err(cycle) => Refusal::Deadlock(cycle),
        };
        let left = self.lock().line.leave(&ticket);
        left.map_or(Ok(()), |entry| Err((refusal, entry.item)))
    }

    /// Puts an item before all others.
    fn push_urgent(&self, entry: Entry<Item<S>>) -> Put<Item<S>> {
        let deferred: Deferred<S> = {
            let mut shared = self.lock();
            if shared.phase != Phase::Open {
                return Err((Refusal::Closed, entry.item));
            }
            shared.ready.push(entry, true);
            self.staff(&mut shared)
        };
        self.perform(deferred);
        Ok(())
    }

    fn put<P>(
        &self,
        parcel: P,
        tag: Tag,
        push: impl FnOnce(Entry<Item<S>>) -> Put<Item<S>>,
    ) -> Put<P>
    where
        P: Parcel<S, Context<S>> + 'static,
    {
        let item = Envelope::new(parcel);
        // SAFETY: what is refused is what was put, which was made of a `P`.
        push(Entry { item, tag })
            .map_err(|(refusal, item)| (refusal, unsafe { item.into_parcel() }))
    }

    fn error<M>(&self, message: M, refusal: Refusal) -> SendError<M> {
        SendError::new(message, self.identity.name(), refusal)
    }

    pub(super) fn tell<M>(&self, message: M, patience: Patience) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        let tag = self.rules.tag(&message);
        self.put(Told(message), tag, |entry| self.push(entry, patience))
            .map_err(|(refusal, Told(message))| self.error(message, refusal))
    }

    pub(super) fn tell_first<M>(&self, message: M) -> Result<(), SendError<M>>
    where
        S: Handle<M>,
        M: Send + 'static,
    {
        let tag = self.rules.tag(&message);
        self.put(Told(message), tag, |entry| self.push_urgent(entry))
            .map_err(|(refusal, Told(message))| self.error(message, refusal))
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
        let tag = self.rules.tag(&message);
        let (to, reply) = reply::pair(self.to());
        let asked = Asked {
            message,
            reply: to,
            limit,
        };
        match self.put(asked, tag, |entry| self.push(entry, patience)) {
            Ok(()) => Ok(reply),
            Err((refusal, asked)) => {
                asked.reply.withdraw();
                Err(self.error(asked.message, refusal))
            }
        }
    }
}

impl<S: Send + 'static> Mortal for Crew<S> {
    fn ending(&self) -> &Ending {
        &self.ending
    }
}

impl<S, M, R> Receive<M, R> for Crew<S>
where
    S: Handle<M, Reply = R> + Send + 'static,
    M: Send + 'static,
    R: Send + 'static,
{
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        Crew::tell(self, message, patience)
    }
    fn tell_first(&self, message: M) -> Result<(), SendError<M>> {
        Crew::tell_first(self, message)
    }
    fn request(
        &self,
        message: M,
        limit: Limit,
        patience: Patience,
    ) -> Result<Reply<R>, SendError<M>> {
        Crew::request(self, message, limit, patience)
    }
    fn pass(&self, passed: Passed<M, R>, patience: Patience) -> Result<(), SendError<M>> {
        let tag = self.rules.tag(&passed.message);
        let put = match patience {
            Patience::Urgent => self.put(passed, tag, |entry| self.push_urgent(entry)),
            patience => self.put(passed, tag, |entry| self.push(entry, patience)),
        };
        put.map_err(|(refusal, passed)| {
            let message = passed.refused(refusal.clone());
            self.error(message, refusal)
        })
    }
    fn retain(&self) {
        Crew::retain(self);
    }
    fn release(&self) {
        Crew::release(self);
    }
    fn end(&self, phase: Phase) {
        Crew::end(self, phase);
    }
    fn identity(&self) -> &Identity {
        &self.identity
    }
    fn stages(&self, stages: &mut Vec<To>) {
        stages.push(self.to());
    }
    fn len(&self) -> usize {
        Crew::len(self)
    }
}
