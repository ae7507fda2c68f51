//! How a sender waits for room.

use crate::edges::Waits;
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
    fn begin(&self) -> Result<impl Sized, Refusal> {
        Waits::for_actor(self.at, self.limit).map_err(Refusal::Deadlock)
    }

    fn limit(&self) -> Limit {
        self.limit
    }
}
