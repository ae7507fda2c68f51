//! References to a pool: sending to it, and asking it.

use super::cell::PoolCell;
use super::ready::Entry;
use super::rules::Tag;
use crate::actor::{
    Address, Ask, Context, Handler, Item, Put, Recipient, Target, Tell, reference, sends,
};
use crate::edges::To;
use crate::envelope::{Envelope, Parcel};
use crate::error::{AskError, Exit, Refusal, SendError};
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::{Admission, Patience, Phase};
use crate::reply::Reply;
use crate::time::Limit;
use core::time::Duration;
use std::sync::Arc;

/// A reference to a [`Pool`](crate::pool::Pool) of workers with the state `S`. It sends all
/// messages that `S` handles.
///
/// References are cheap to clone and usable from any thread. When the last one is dropped
/// ([`Address`]es count, too), the pool is closed: it handles the messages that wait, and ends.
///
/// # Examples
/// ```
/// use pirn_actor::{Exit, Function};
/// use pirn_actor::pool::Pool;
///
/// let square = Pool::fixed(2).spawn(|| Function::new(|n: u64| n * n)).unwrap();
/// assert_eq!(square.ask(7), Ok(49));
/// assert_eq!(square.workers().count, 2);
/// square.close();
/// assert_eq!(square.join(), Exit::Closed);
/// ```
pub struct PoolRef<S: Send + 'static> {
    cell: Arc<PoolCell<S>>,
}

/// The numbers of a pool's workers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Workers {
    /// The number of workers, including those whose state is being made.
    pub count: usize,
    /// The number of workers that handle a message.
    pub busy: usize,
}

sends!(PoolRef, "PoolRef", PoolCell);

impl<S: Send + 'static> PoolRef<S> {
    /// Returns the numbers of workers. They may change at once.
    pub fn workers(&self) -> Workers {
        self.cell.workers()
    }

    /// Waits until the least number of workers have their states.
    ///
    /// # Errors
    /// The pool has ended before, for instance because the recipe failed.
    pub fn ready(&self) -> Result<(), Exit> {
        let least = u32::try_from(self.cell.sizes.least).unwrap_or(u32::MAX);
        self.cell.life.ending.wait_built(least)
    }
}

/// The result of a push: why the item was refused, and the item.
type Outcome<T> = Result<(), (Refusal, T)>;

impl<S: Send + 'static> PoolCell<S> {
    /// Puts an item. If the pool is full, [`Overflow`] decides: by default the sender waits for
    /// room.
    ///
    /// [`Overflow`]: crate::Overflow
    fn push(&self, entry: Entry<Item<S>>, patience: Patience) -> Outcome<Item<S>> {
        let mut shared = self.lock();
        let is_full = shared.ready.waiting() >= self.capacity || !shared.line.is_empty();
        let mut displaced = None;
        match self.overflow.admit(shared.phase, is_full, patience) {
            Admission::In => {}
            Admission::Wait(limit) => {
                drop(shared);
                return self.wait_for_room(entry, limit);
            }
            Admission::Refuse(refusal) => return Err((refusal, entry.item)),
            Admission::DropNew => {
                drop(shared);
                drop(entry);
                return Ok(());
            }
            Admission::DropOld => {
                displaced = shared.ready.pop_oldest();
                displaced.as_mut().map(Envelope::displace);
            }
            Admission::Stop => {
                drop(shared);
                self.end(Phase::Overflowing);
                return Err((Refusal::Closed, entry.item));
            }
        }
        shared.ready.push(entry, patience == Patience::Urgent);
        let deferred = self.call_worker(&mut shared);
        drop(shared);
        self.perform(deferred);
        drop(displaced);
        Ok(())
    }

    fn wait_for_room(&self, entry: Entry<Item<S>>, limit: Limit) -> Outcome<Item<S>> {
        let (ticket, deferred) = {
            let mut shared = self.lock();
            if shared.phase != Phase::Open {
                return Err((Refusal::Closed, entry.item));
            }
            let ticket = shared.line.enter(entry);
            self.admit(&mut shared);
            (ticket, self.call_worker(&mut shared))
        };
        self.perform(deferred);
        let refusal = ticket.wait_for(&self.to(), limit);
        let left = self.lock().line.leave(&ticket);
        left.map_or(Ok(()), |entry| Err((refusal, entry.item)))
    }
}

impl<S: Send + 'static> Put for PoolCell<S> {
    type State = S;
    type Tag = Tag;

    fn tag<M: 'static>(&self, message: &M) -> Tag {
        self.rules.tag(message)
    }

    /// Returns the target of a wait for the pool: any of its workers.
    fn to(&self) -> To {
        To::AnyOf(self.arc())
    }

    fn put<P>(&self, parcel: P, tag: Tag, patience: Patience) -> Outcome<P>
    where
        P: Parcel<S, Context<S>> + 'static,
    {
        let item = Envelope::new(parcel);
        // SAFETY: a refused envelope is the one that was put, which was made of a `P`.
        self.push(Entry { item, tag }, patience)
            .map_err(|(refusal, item)| (refusal, unsafe { item.into_parcel() }))
    }
}
