//! Messages for a name that no actor has yet.

use super::named::Faces;
use crate::actor::Target;
use crate::error::Refusal;
use crate::mailbox::Patience;
use crate::time::timers::TimerHandle;
use core::any::Any;
use core::fmt;
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

/// A message kept for a name.
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) timer: TimerHandle,
    pub(super) message: Box<dyn Early>,
}

/// A message of any type.
pub(super) trait Early: Send {
    /// Puts the message before all others in the mailbox of the actor that now has the name.
    fn deliver(self: Box<Self>, to: &Faces) -> Result<(), (Refusal, Box<dyn Any + Send>)>;
    fn into_any(self: Box<Self>) -> Box<dyn Any + Send>;
}

impl<M: Send + 'static> Early for M {
    fn deliver(self: Box<M>, to: &Faces) -> Result<(), (Refusal, Box<dyn Any + Send>)> {
        let Some(target) = to.get::<Target<M>>() else {
            return Err((Refusal::WrongType, self));
        };
        target
            .sends()
            .tell(*self, Patience::Urgent)
            .map_err(|error| {
                let refusal = error.refusal().clone();
                (refusal, Box::new(error.into_message()) as Box<_>)
            })
    }

    fn into_any(self: Box<M>) -> Box<dyn Any + Send> {
        self
    }
}
