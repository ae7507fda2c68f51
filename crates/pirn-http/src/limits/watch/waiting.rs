//! The waits of a connection that has left HTTP: those for what its client sends may be as long as
//! they like, until the server is shut down.

use super::{FOREVER, IDLE, LINGERING, State, TICK, Watch, take_interrupt};
use std::sync::Arc;
use std::time::Duration;

/// See the module's documentation.
pub(crate) struct Waiting {
    watch: Arc<Watch>,
    state: Arc<State>,
}

impl Waiting {
    pub(super) fn new(watch: &Arc<Watch>, state: &Arc<State>) -> Waiting {
        Waiting {
            watch: Arc::clone(watch),
            state: Arc::clone(state),
        }
    }

    /// Does what waits for the client.
    pub(crate) fn during<R>(&self, wait: impl FnOnce() -> R) -> R {
        self.until(FOREVER << 2 | IDLE, wait)
    }

    /// Does what waits for the client, for a second at most.
    pub(crate) fn briefly(&self, wait: impl FnOnce()) {
        if self.is_dismissed() {
            take_interrupt();
            self.state.absorb();
        }
        self.until(self.watch.tick_after(LINGERING) << 2, wait);
    }

    /// Returns how long the client may let a write wait.
    pub(crate) fn longest_write(&self) -> Duration {
        self.watch.timeouts.idle.max(TICK)
    }

    fn until<R>(&self, due: u64, wait: impl FnOnce() -> R) -> R {
        self.watch.set(&self.state, due);
        let result = wait();
        self.watch.set(&self.state, 0);
        result
    }

    /// Returns whether such a wait has been ended.
    pub(crate) fn is_dismissed(&self) -> bool {
        self.state.has_expired()
    }
}
