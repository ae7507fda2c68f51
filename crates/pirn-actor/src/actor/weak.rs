//! Addresses that do not keep their receiver open: what timers, topics and registries have of it.

use super::address::{Address, Receive, Tell};
use super::cell::Cell;
use super::ending::Ending;
use super::handle::Handle;
use super::reference::Ref;
use super::sending::Patience;
use crate::error::{Refusal, SendError};
use crate::identity::{Identity, current_limit};
use crate::registry::Ends;
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

/// What can be the receiver of timers, and the subscriber of topics: it is sent to by those who do
/// not keep it open.
///
/// # Examples
/// Something of one's own becomes one by [`Target::new`]:
/// ```
/// use pirn_actor::{self as actor, Recipient, SendError, Target, Tell};
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
/// actor::send_after(&Lines(lines), std::time::Duration::from_millis(1), 7);
/// assert_eq!(told.recv().unwrap(), "7");
/// ```
pub trait Recipient<M>: Tell<M> {
    /// Returns what sends to the same, and does not keep it open.
    fn target(&self) -> Target<M>;
}

/// The address of any receiver of messages of the type `M`, which does not keep that open.
///
/// Cheap to clone. See [`Recipient`].
pub struct Target<M: 'static>(Arc<dyn Sends<M>>);

/// How a [`Target`] is sent to.
pub(crate) enum Mode {
    /// Waits for room, if the receiver is made so.
    Wait,
    /// Does not wait.
    Try,
    /// There is always room, after all others.
    Beyond,
    /// There is always room, before all others.
    First,
    /// There is always room, and this is dropped when the message has been handled.
    Tracked(Handled),
}

/// A receiver, to those who send to it by a [`Target`].
pub(crate) trait Sends<M>: Send + Sync {
    fn tell(&self, message: M, mode: Mode) -> Result<(), SendError<M>>;
    /// Returns who it is, if that is an actor.
    fn identity(&self) -> Option<&Identity>;
    /// Has a function called when the receiver ends, at once if it has, never if that is not known.
    fn watch(&self, f: Box<dyn FnOnce() + Send>);
    /// Returns true if it is known to have ended.
    fn has_ended(&self) -> bool;
}

impl<M> Target<M> {
    /// Makes a target that sends by this, and keeps it.
    ///
    /// Timers and topics use [`Tell::try_send`], and try again later, or not, if there is no room.
    pub fn new(tell: impl Tell<M> + Send + Sync + 'static) -> Target<M> {
        Target(Arc::new(By(tell)))
    }

    pub(crate) fn of(sends: impl Sends<M> + 'static) -> Target<M> {
        Target(Arc::new(sends))
    }

    pub(crate) fn tell(&self, message: M, mode: Mode) -> Result<(), SendError<M>> {
        self.0.tell(message, mode)
    }

    pub(crate) fn identity(&self) -> Option<&Identity> {
        self.0.identity()
    }

    pub(crate) fn watch(&self, f: Box<dyn FnOnce() + Send>) {
        self.0.watch(f);
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.0.has_ended()
    }
}

impl<M: Send + 'static> Target<M> {
    /// The target of an actor's own timers.
    pub(crate) fn of_cell<S>(cell: &Arc<Cell<S>>) -> Target<M>
    where
        S: Handle<M, Reply: 'static> + Send + 'static,
    {
        let actor = Arc::downgrade(cell) as Weak<dyn Receive<M, S::Reply>>;
        Target::of(WeakAddress::of(actor, cell.identity().clone()))
    }
}

impl<M> Clone for Target<M> {
    fn clone(&self) -> Target<M> {
        Target(Arc::clone(&self.0))
    }
}

impl<M> fmt::Debug for Target<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Target").field(&self.identity()).finish()
    }
}

impl<M> Tell<M> for Target<M> {
    fn send(&self, message: M) -> Result<(), SendError<M>> {
        self.tell(message, Mode::Wait)
    }
    fn try_send(&self, message: M) -> Result<(), SendError<M>> {
        self.tell(message, Mode::Try)
    }
}

impl<M> Recipient<M> for Target<M> {
    fn target(&self) -> Target<M> {
        self.clone()
    }
}

impl<M, R> Sends<M> for WeakAddress<M, R> {
    fn tell(&self, message: M, mode: Mode) -> Result<(), SendError<M>> {
        let Some(actor) = self.actor.upgrade() else {
            let name = self.identity.name();
            return Err(SendError::new(message, name, Refusal::Closed));
        };
        match mode {
            Mode::Wait => actor.tell(message, Patience::Until(current_limit())),
            Mode::Try => actor.tell(message, Patience::None),
            Mode::Beyond => actor.tell_beyond(message),
            Mode::First => actor.tell_first(message),
            Mode::Tracked(handled) => actor.tell_tracked(message, handled),
        }
    }

    fn identity(&self) -> Option<&Identity> {
        Some(&self.identity)
    }

    fn watch(&self, f: Box<dyn FnOnce() + Send>) {
        match self.actor.upgrade() {
            Some(actor) => drop(actor.ending().watch(Box::new(move |_| f()))),
            None => f(),
        }
    }

    fn has_ended(&self) -> bool {
        let actor = self.actor.upgrade();
        actor.is_none_or(|actor| actor.ending().exit().is_some())
    }
}

impl<M, R> Ends for WeakAddress<M, R> {
    fn with_ending(&self, f: &mut dyn FnMut(&Ending)) {
        if let Some(actor) = self.actor.upgrade() {
            f(actor.ending());
        }
    }
}

/// What is known by its `Tell` alone.
struct By<T>(T);

impl<M, T: Tell<M> + Send + Sync> Sends<M> for By<T> {
    fn tell(&self, message: M, mode: Mode) -> Result<(), SendError<M>> {
        match mode {
            Mode::Wait => self.0.send(message),
            Mode::Try | Mode::Beyond | Mode::First | Mode::Tracked(_) => self.0.try_send(message),
        }
    }

    fn identity(&self) -> Option<&Identity> {
        None
    }

    fn watch(&self, _: Box<dyn FnOnce() + Send>) {}

    fn has_ended(&self) -> bool {
        false
    }
}

impl<M, R> Recipient<M> for Address<M, R> {
    fn target(&self) -> Target<M> {
        Target::of(self.downgrade())
    }
}

impl<S, M> Recipient<M> for Ref<S>
where
    S: Handle<M, Reply: 'static> + Send + 'static,
    M: Send + 'static,
{
    fn target(&self) -> Target<M> {
        Target::of_cell(self.cell())
    }
}
