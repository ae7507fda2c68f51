//! A supervisor that is a child of another one.
//!
//! When it has failed more often than it may, its children pause, in reverse order, and the
//! supervisor above is told of a failure. If that has it begin anew, its children do, in order: so
//! references to them stay good through that, too.

use super::events::{Event, Reporter};
use super::keeper::{Boss, Keeper};
use super::node::Node;
use crate::error::Failure;
use crate::mailbox::Phase;
use crate::poison::locked;
use pirn::thread;
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};

pub(super) struct Branch {
    /// The place of the keeper while no thread has it.
    keeper: Arc<Mutex<Option<Keeper>>>,
    events: Sender<Event>,
}

impl Branch {
    pub(super) fn new(keeper: Keeper) -> Branch {
        Branch {
            events: keeper.sender(),
            keeper: Arc::new(Mutex::new(Some(keeper))),
        }
    }

    fn tell(&self, event: Event) {
        // Its other end is in the keeper, which is here or at work.
        let _ = self.events.send(event);
    }
}

impl Node for Branch {
    fn begin(&mut self, name: &Arc<str>, reporter: Reporter) -> Result<(), Failure> {
        let home = Arc::clone(&self.keeper);
        let body = move || {
            let keeper = locked(&home).take();
            let Some(mut keeper) = keeper else { return };
            keeper.set_boss(Boss::Above(reporter.clone()));
            let exit = keeper.run();
            keeper.reset();
            *locked(&home) = Some(keeper);
            reporter.ended(exit);
        };
        let thread = thread::Builder::new().name(name.to_string()).spawn(body);
        thread
            .map(drop)
            .map_err(|error| Failure::new(error.to_string()))
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
