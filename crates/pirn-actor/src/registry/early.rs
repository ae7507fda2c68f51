//! Messages for names that no actor has yet.

use super::named::Faces;
use crate::actor::{Address, Target};
use crate::error::Refusal;
use crate::mailbox::Patience;
use crate::time::timers::{self, TimerHandle};
use core::any::Any;
use core::fmt;
use core::time::Duration;
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// A message that was kept for a name, and that no actor has got.
///
/// # Examples
/// See [`Registry::on_undelivered`](super::Registry::on_undelivered).
#[non_exhaustive]
pub struct Undelivered {
    /// The name.
    pub name: Arc<str>,
    /// Why: [`TimedOut`](Refusal::TimedOut), [`WrongType`](Refusal::WrongType) if the actor with
    /// the name accepts no messages of this type, or [`Closed`](Refusal::Closed) if the actor, or
    /// the registry, has ended.
    pub why: Refusal,
    /// The message.
    pub message: Box<dyn Any + Send>,
}

impl fmt::Debug for Undelivered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Undelivered")
            .field("name", &self.name)
            .field("why", &self.why)
            .finish_non_exhaustive()
    }
}

/// The messages of all names.
#[derive(Default)]
pub(super) struct Early {
    /// In order, for each name that has some.
    names: HashMap<Arc<str>, VecDeque<Kept>>,
    /// The number of messages so far. Each has its own number.
    kept: u64,
    /// Calls the program's `on_undelivered`.
    pub(super) undelivered: Option<Address<Undelivered>>,
}

struct Kept {
    number: u64,
    timer: TimerHandle,
    message: Box<dyn Message>,
}

/// A message of any type.
pub(super) trait Message: Any + Send {
    /// Puts the message before all others in the mailbox of the actor that now has the name.
    fn deliver(self: Box<Self>, to: &Faces) -> Result<(), (Refusal, Box<dyn Any + Send>)>;
}

impl<M: Send + 'static> Message for M {
    fn deliver(self: Box<M>, to: &Faces) -> Result<(), (Refusal, Box<dyn Any + Send>)> {
        let Some(target) = to.get::<Target<M>>() else {
            return Err((Refusal::WrongType, self));
        };
        let sent = target.sends().tell(*self, Patience::Urgent);
        sent.map_err(|error| {
            let refusal = error.refusal().clone();
            (refusal, Box::new(error.into_message()) as Box<_>)
        })
    }
}

/// Messages that the program does not get. The caller drops them without the lock, since their
/// destructors are the program's.
#[must_use]
pub(super) struct Lost(#[expect(dead_code, reason = "it is dropped")] Vec<Undelivered>);

impl Early {
    /// Returns the number of messages that are kept for a name.
    pub(super) fn count(&self, name: &str) -> usize {
        self.names.get(name).map_or(0, VecDeque::len)
    }

    /// Keeps a message for a name, and calls `expire` with its number when `limit` has passed.
    pub(super) fn keep(
        &mut self,
        name: Arc<str>,
        message: Box<dyn Message>,
        limit: Duration,
        expire: impl FnOnce(&Arc<str>, u64) + Send + 'static,
    ) {
        self.kept += 1;
        let (number, of) = (self.kept, Arc::clone(&name));
        let timer = timers::after(limit, move || expire(&of, number));
        self.names.entry(name).or_default().push_back(Kept {
            number,
            timer,
            message,
        });
    }

    /// Takes out a message whose time is over.
    pub(super) fn expire(&mut self, name: &Arc<str>, number: u64) -> Lost {
        let kept = self.names.get_mut(name);
        let expired = kept.and_then(|kept| {
            let at = kept.iter().position(|kept| kept.number == number)?;
            kept.remove(at)
        });
        if self.count(name) == 0 {
            self.names.remove(name);
        }
        let expired = expired.map(|kept| (Refusal::TimedOut, kept.message as Box<_>));
        self.hand_out(name, expired)
    }

    /// Sends the messages for a name to the actor that now has it.
    pub(super) fn deliver(&mut self, name: &Arc<str>, to: &Faces) -> Lost {
        let kept = self.names.remove(name).unwrap_or_default();
        let deliver = |kept: Kept| {
            kept.timer.cancel();
            kept.message.deliver(to).err()
        };
        let left: Vec<_> = kept.into_iter().filter_map(deliver).collect();
        self.hand_out(name, left)
    }

    /// Sends messages to the actor that calls the program's `on_undelivered`. Returns those that it
    /// does not get.
    fn hand_out(
        &self,
        name: &Arc<str>,
        left: impl IntoIterator<Item = (Refusal, Box<dyn Any + Send>)>,
    ) -> Lost {
        let send = |(why, message)| {
            let name = Arc::clone(name);
            let undelivered = Undelivered { name, why, message };
            match &self.undelivered {
                Some(actor) => actor.try_send(undelivered).err()?.into_message().into(),
                None => Some(undelivered),
            }
        };
        Lost(left.into_iter().filter_map(send).collect())
    }
}

impl Drop for Early {
    fn drop(&mut self) {
        for (name, kept) in core::mem::take(&mut self.names) {
            let left = kept.into_iter().map(|kept| {
                kept.timer.cancel();
                (Refusal::Closed, kept.message as Box<_>)
            });
            drop(self.hand_out(&name, left));
        }
    }
}
