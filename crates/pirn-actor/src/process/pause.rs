//! Processes that pause for a restart.
//!
//! ```text
//!   the function runs --- hold: interrupted, and each receive fails --- it returns ---> paused
//!          |                                                                              |
//!          +--- a panic ----------------------------------------------------------> paused
//!                                                                                         |
//!          the function runs, from its beginning <------------- go on --------------------+
//! ```
//!
//! The thread stays, and so does what is in the mailbox, and what was put aside.

use super::Inbox;
use crate::mailbox::{Next, Phase};
use pirn::thread;

impl<M> Inbox<M> {
    /// Returns true if the function is to return, so that the process can pause.
    pub(crate) fn is_to_pause(&self) -> bool {
        let mailbox = &self.cell.mailbox;
        self.is_told_to_pause || mailbox.phase() <= Phase::Closing && !mailbox.goes_on()
    }

    /// Notes that the mailbox was held under the function. It is not yet: the function runs.
    pub(super) fn note_hold(&mut self) {
        self.is_told_to_pause = true;
        let this = thread::current();
        // Blocking calls of the function fail until it returns.
        this.interrupt();
        let _ = self.cell.mailbox.release();
        self.cell.mailbox.enter(this);
    }

    /// Holds the mailbox, now that the function has returned. Returns false if the process is to
    /// end.
    pub(crate) fn pause(&mut self) -> bool {
        self.is_told_to_pause = false;
        // The places of messages at which a search was when the function panicked.
        self.aside.retain(Option::is_some);
        matches!(self.cell.mailbox.pause(&mut self.batch), Next::Held)
    }

    /// Waits until the mailbox is not held any more. Returns false if the process is to end.
    pub(crate) fn wait_for_release(&mut self) -> bool {
        while self.cell.mailbox.is_held() {
            thread::park();
        }
        self.cell.mailbox.enter(thread::current());
        self.cell.mailbox.phase() <= Phase::Closing
    }
}
