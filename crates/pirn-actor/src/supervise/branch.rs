//! A supervisor that is a child of another one.
//!
//! When it has failed more often than it may, its children pause, in reverse order, and the
//! supervisor above is told of a failure. If that has it begin anew, its children do, in order: so
//! references to them stay good through that, too.

use super::events::{Event, Reporter};
use super::keeper::{Boss, Keeper};
use super::lent::Home;
use super::node::{Node, no_thread, not_over};
use crate::error::Failure;
use crate::mailbox::Phase;
use pirn::thread;
use std::sync::Arc;
use std::sync::mpsc::Sender;

pub(super) struct Branch {
    keeper: Home<Keeper>,
    events: Sender<Event>,
}

impl Branch {
    pub(super) fn new(keeper: Keeper) -> Branch {
        Branch {
            events: keeper.sender(),
            keeper: Home::new(keeper),
        }
    }

    fn tell(&self, event: Event) {
        // Its other end is in the keeper, which is here or at work.
        let _ = self.events.send(event);
    }
}

impl Node for Branch {
    fn begin(&mut self, name: &Arc<str>, reporter: Reporter) -> Result<(), Failure> {
        let mut lent = self.keeper.lend().ok_or_else(not_over)?;
        lent.get().reset();
        lent.get().set_boss(Boss::Above(reporter.clone()));
        let body = move || {
            let exit = lent.get().run();
            drop(lent); // home: it may be begun again
            reporter.ended(exit);
        };
        let thread = thread::Builder::new().name(name.to_string());
        thread.spawn(body).map(drop).map_err(no_thread)
    }

    fn hold(&self) {
        self.tell(Event::Hold);
    }

    fn go_on(&self) {
        self.tell(Event::GoOn);
    }

    fn end(&self, _: Phase) {
        self.tell(Event::Stop);
    }

    fn is_tree(&self) -> bool {
        true
    }
}
