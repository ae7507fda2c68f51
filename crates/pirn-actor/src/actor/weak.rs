//! Addresses that do not keep their receiver open, for timers, topics and registries.

use super::address::{Address, Tell};
use super::passing::Passed;
use super::sending::Receive;
use crate::error::{Refusal, SendError};
use crate::identity::{Identity, current_limit};
use crate::life::Actor;
use crate::mailbox::Patience;
use crate::time::Limit;
use crate::time::timers::Handled;
use core::fmt;
use std::sync::{Arc, Weak};

/// An [`Address`] that does not keep its actor open.
///
/// # Examples
/// ```
/// use pirn_actor as actor;
///
/// let square = actor::function(|n: u64| n * n);
/// let weak = square.downgrade();
/// assert_eq!(weak.upgrade().unwrap().ask(7), Ok(49));
/// let monitor = square.monitor();
/// drop(square);
/// assert_eq!(monitor.recv().unwrap(), actor::Exit::Closed);
/// ```
pub struct WeakAddress<M: 'static, R: 'static = ()> {
    actor: Weak<dyn Receive<M, R>>,
    identity: Identity,
}

impl<M, R> WeakAddress<M, R> {
    pub(super) fn of(actor: Weak<dyn Receive<M, R>>, identity: Identity) -> WeakAddress<M, R> {
        WeakAddress { actor, identity }
    }

    /// Returns an address, unless the actor is gone. It may be closing.
    pub fn upgrade(&self) -> Option<Address<M, R>> {
        self.actor.upgrade().map(Address::new)
    }

    fn gone(&self, message: M) -> SendError<M> {
        SendError::new(message, self.identity.name(), Refusal::Closed)
    }
}

impl<M, R> Clone for WeakAddress<M, R> {
    fn clone(&self) -> WeakAddress<M, R> {
        WeakAddress::of(Weak::clone(&self.actor), self.identity.clone())
    }
}

impl<M, R> fmt::Debug for WeakAddress<M, R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("WeakAddress").field(&self.identity).finish()
    }
}

/// A receiver for timers and a subscriber for topics: these send to it without keeping it open.
///
/// # Examples
/// A type of the program becomes one with [`Target::new`]:
/// ```
/// use pirn_actor::{self as actor, SendError};
/// use pirn_actor::address::{Recipient, Target, Tell};
/// use std::sync::mpsc;
///
/// #[derive(Clone)]
/// struct Lines(mpsc::Sender<String>);
/// impl Tell<u32> for Lines {
///     fn send(&self, number: u32) -> Result<(), SendError<u32>> {
///         self.0.send(number.to_string()).unwrap();
///         Ok(())
///     }
///     fn try_send(&self, number: u32) -> Result<(), SendError<u32>> {
///         self.send(number)
///     }
/// }
/// impl Recipient<u32> for Lines {
///     fn target(&self) -> Target<u32> {
///         Target::new(self.clone())
///     }
/// }
/// let (lines, told) = mpsc::channel();
/// actor::time::send_after(&Lines(lines), std::time::Duration::from_millis(1), 7);
/// assert_eq!(told.recv().unwrap(), "7");
/// ```
pub trait Recipient<M>: Tell<M> {
    /// Returns a target that sends to the same receiver and does not keep it open.
    fn target(&self) -> Target<M>;
}

/// The address of any receiver of messages of the type `M`. It does not keep the receiver open.
///
/// Cheap to clone. See [`Recipient`].
pub struct Target<M: 'static>(Arc<dyn Sends<M>>);

/// A receiver as a [`Target`] sees it.
pub(crate) trait Sends<M>: Send + Sync {
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>>;

    /// Puts a message after all others, whatever the capacity, and drops `handled` when the message
    /// has been handled: at once, if the receiver cannot tell.
    fn tell_tracked(&self, message: M, handled: Handled) -> Result<(), SendError<M>> {
        drop(handled);
        self.tell(message, Patience::Beyond)
    }

    /// Returns the receiver if it is an actor that is not gone.
    fn actor(&self) -> Option<Arc<dyn Actor>> {
        None
    }

    /// Returns true if the receiver is known to have ended.
    fn has_ended(&self) -> bool {
        false
    }
}

impl<M, R> Sends<M> for WeakAddress<M, R> {
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        match self.actor.upgrade() {
            Some(actor) => actor.tell(message, patience),
            None => Err(self.gone(message)),
        }
    }

    fn tell_tracked(&self, message: M, handled: Handled) -> Result<(), SendError<M>> {
        match self.actor.upgrade() {
            Some(actor) => {
                let passed = Passed::new(message, handled, Limit::NEVER);
                actor.pass(passed, Patience::Beyond)
            }
            None => Err(self.gone(message)),
        }
    }

    fn actor(&self) -> Option<Arc<dyn Actor>> {
        self.actor.upgrade().map(|actor| actor as Arc<dyn Actor>)
    }

    fn has_ended(&self) -> bool {
        self.actor().is_none_or(|actor| actor.exit().is_some())
    }
}

/// A receiver that has nothing but a [`Tell`].
struct By<T>(T);

impl<M, T: Tell<M> + Send + Sync> Sends<M> for By<T> {
    fn tell(&self, message: M, patience: Patience) -> Result<(), SendError<M>> {
        match patience {
            Patience::Until(_) => self.0.send(message),
            Patience::None | Patience::Urgent | Patience::Beyond => self.0.try_send(message),
        }
    }
}

impl<M> Target<M> {
    /// Makes a target that sends by `tell` and keeps it.
    ///
    /// Timers and topics call [`Tell::try_send`]. If there is no room, they try again later, or
    /// give up.
    pub fn new(tell: impl Tell<M> + Send + Sync + 'static) -> Target<M> {
        Target::of(By(tell))
    }

    pub(crate) fn of(sends: impl Sends<M> + 'static) -> Target<M> {
        Target(Arc::new(sends))
    }

    /// Returns the target of an actor.
    pub(crate) fn of_actor<R: 'static>(actor: &Arc<impl Receive<M, R> + 'static>) -> Target<M> {
        let weak = Arc::downgrade(actor);
        Target::of(WeakAddress::of(weak, actor.identity().clone()))
    }

    pub(crate) fn sends(&self) -> &dyn Sends<M> {
        &*self.0
    }
}

impl<M> Clone for Target<M> {
    fn clone(&self) -> Target<M> {
        Target(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Target<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.0.actor()).finish()
    }
}

impl<M> Tell<M> for Target<M> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.0.tell(message, Patience::Until(current_limit()))
    }
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.0.tell(message, Patience::None)
    }
}

impl<M> Recipient<M> for Target<M> {
    fn target(&self) -> Target<M> {
        self.clone()
    }
}

impl<M, R> Recipient<M> for Address<M, R> {
    fn target(&self) -> Target<M> {
        Target::of(self.downgrade())
    }
}
