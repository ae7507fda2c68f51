//! A handler's view of its own actor.

use super::cell::ActorCell;
use super::handler::Handler;
use super::reference::Ref;
use crate::error::Exit;
use crate::identity::current_limit;
use crate::life::Actor;
use crate::mailbox::Phase;
use core::fmt;
use core::ops::Deref;
use std::sync::Arc;
use std::time::Instant;

/// The actor that handles the message.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Context, Exit, Handler};
///
/// struct Countdown(u32);
/// impl Handler<()> for Countdown {
///     type Reply = ();
///     fn handle(&mut self, (): (), context: &Context<Self>) {
///         self.0 -= 1;
///         match self.0 {
///             0 => context.stop(),
///             _ => drop(context.this().send(())),
///         }
///     }
/// }
/// let countdown = actor::spawn(Countdown(3));
/// countdown.send(()).unwrap();
/// assert_eq!(countdown.join(), Exit::Stopped);
/// ```
pub struct Context<S>(Arc<ActorCell<S>>);

impl<S: Send> Context<S> {
    pub(super) fn new(cell: Arc<ActorCell<S>>) -> Context<S> {
        Context(cell)
    }

    pub(crate) fn cell(&self) -> &Arc<ActorCell<S>> {
        &self.0
    }

    /// Returns the actor's name.
    pub fn name(&self) -> Arc<str> {
        self.0.identity().name()
    }

    /// Ends the actor after this message.
    pub fn stop(&self) {
        self.0.end(Phase::Stopping);
    }

    /// Ends the actor after the messages that are in its mailbox.
    pub fn close(&self) {
        self.0.end(Phase::Closing);
    }

    /// Returns true if the actor will end after this message, or after the messages in its mailbox.
    /// A handler that takes long may check this.
    pub fn is_ending(&self) -> bool {
        self.0.mailbox.phase() > Phase::Open
    }

    /// Returns the time until which the asker of this message waits. Asks that the handler makes
    /// end then, too.
    pub fn deadline(&self) -> Option<Instant> {
        current_limit().instant()
    }
}

impl<S: Send + 'static> Context<S> {
    /// Returns a reference to this actor. While the actor itself keeps one, it is not closed when
    /// all others are dropped.
    pub fn this(&self) -> Ref<S> {
        Ref::new(Arc::clone(&self.0))
    }

    /// Sends this actor a message, made by `make`, when another actor of any kind ends: at once if
    /// it has ended already.
    ///
    /// The message comes before all others in the mailbox, and there is always room for it. The
    /// watch does not keep this actor open, and a closing actor gets no such message. A new state
    /// after a failure watches nothing, so
    /// [`Lifecycle::started`](crate::lifecycle::Lifecycle::started) is a good place for this call.
    /// `make` runs on the thread of the actor that ends.
    ///
    /// # Examples
    /// See [`Lifecycle`](crate::lifecycle::Lifecycle).
    pub fn watch<M>(
        &self,
        actor: &impl Deref<Target = dyn Actor>,
        make: impl FnOnce(Exit) -> M + Send + 'static,
    ) where
        S: Handler<M, Reply: 'static>,
        M: Send + 'static,
    {
        self.0.life.ending.watch_for(&self.0, &**actor, make);
    }
}

impl<S: Send> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(self.0.identity()).finish()
    }
}
