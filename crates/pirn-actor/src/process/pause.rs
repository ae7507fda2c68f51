//! How a process pauses for a restart.
//!
//! ```text
//!   the function runs --- hold: interrupted, and each receive fails --- it returns ---> paused
//!          |                                                                              |
//!          +--- a panic ----------------------------------------------------------> paused
//!                                                                                         |
//!          the function runs, from its beginning <------------- go on --------------------+
//! ```
//!
//! The thread stays, and so do the messages in the mailbox and those put aside.

use super::Inbox;
use crate::mailbox::{Next, Phase};
use pirn::thread;

impl<M> Inbox<M> {
    /// Returns true if the function must return so that the process can pause.
    pub(crate) fn is_to_pause(&self) -> bool {
        let mailbox = &self.cell.mailbox;
        self.is_told_to_pause || mailbox.phase() <= Phase::Closing && !mailbox.goes_on()
    }

    /// Notes that the supervisor wants a pause, and releases the mailbox: the function still runs.
    pub(super) fn note_hold(&mut self) {
        self.is_told_to_pause = true;
        let this = thread::current();
        // Blocking calls of the function fail until it returns.
        this.interrupt();
        let _ = self.cell.mailbox.release();
        self.cell.mailbox.enter(this);
    }

    /// Holds the mailbox after the function has returned. Returns false if the process is to end.
    pub(crate) fn pause(&mut self) -> bool {
        self.is_told_to_pause = false;
        // The places of messages that searches were looking at when the function panicked.
        self.aside.retain(Option::is_some);
        matches!(self.cell.mailbox.pause(&mut self.batch), Next::Held)
    }

    /// Waits until the mailbox is released. Returns false if the process is to end.
    pub(crate) fn wait_for_release(&mut self) -> bool {
        while self.cell.mailbox.is_held() {
            thread::park();
        }
        self.cell.mailbox.enter(thread::current());
        self.cell.mailbox.phase() <= Phase::Closing
    }
}
