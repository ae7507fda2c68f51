//! What a handler knows about its own actor.

use super::cell::Cell;
use super::reference::Ref;
use crate::identity::current_limit;
use crate::mailbox::Phase;
use core::fmt;
use std::sync::Arc;
use std::time::Instant;

/// The actor that handles a message, as its handler sees it.
///
/// # Examples
/// ```
/// use pirn_actor::{self as actor, Context, Exit, Handle};
///
/// struct Countdown(u32);
/// impl Handle<()> for Countdown {
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
pub struct Context<S>(Arc<Cell<S>>);

impl<S: Send> Context<S> {
    pub(super) fn new(cell: Arc<Cell<S>>) -> Context<S> {
        Context(cell)
    }

    pub(crate) fn cell(&self) -> &Arc<Cell<S>> {
        &self.0
    }

    /// Returns the actor's name.
    pub fn name(&self) -> Arc<str> {
        self.0.identity().name()
    }

    /// Has the actor end after this message.
    pub fn stop(&self) {
        self.0.end(Phase::Stopping);
    }

    /// Has the actor end after the messages that are in its mailbox.
    pub fn close(&self) {
        self.0.end(Phase::Closing);
    }

    /// Returns true if the actor will end after this message, or after those in its mailbox. A
    /// handler that takes long may want to look.
    pub fn is_ending(&self) -> bool {
        self.0.mailbox().phase() > Phase::Open
    }

    /// Returns the time until which the asker of this message waits. What the handler asks of
    /// others ends then, too.
    pub fn deadline(&self) -> Option<Instant> {
        current_limit().instant()
    }
}

impl<S: Send + 'static> Context<S> {
    /// Returns a reference to this actor. As long as the actor itself keeps one, it is not closed
    /// when all others are dropped.
    pub fn this(&self) -> Ref<S> {
        Ref::new(Arc::clone(&self.0))
    }
}

impl<S: Send> fmt::Debug for Context<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Context").field(self.0.identity()).finish()
    }
}
