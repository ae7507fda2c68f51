//! How a sender waits for room.

use crate::edges::{Over, To, Waits};
use crate::error::Refusal;
use crate::identity::Identity;
use crate::mailbox::Wait;
use crate::time::Limit;

/// A sender that waits for room at an actor.
pub(crate) struct ForRoom<'a> {
    pub(crate) at: &'a Identity,
    pub(crate) limit: Limit,
}

impl Wait for ForRoom<'_> {
    fn begin(&self, over: &Over) -> Result<impl Sized, Refusal> {
        let at = To::Actor(self.at.clone());
        Waits::begin(&at, self.limit, over).map_err(Refusal::Deadlock)
    }

    fn limit(&self) -> Limit {
        self.limit
    }
}
