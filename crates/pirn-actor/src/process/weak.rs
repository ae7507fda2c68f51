//! A process, to those who send to it and do not keep it open.

use super::{Desk, Process};
use crate::actor::{Ending, Mode, Recipient, Sends, Target};
use crate::error::{Refusal, SendError};
use crate::identity::{Identity, current_limit};
use crate::registry::Ends;
use std::sync::{Arc, Weak};

struct WeakDesk<M> {
    desk: Weak<Desk<M>>,
    identity: Identity,
}

impl<M: Send + 'static, T> Process<M, T> {
    fn weak(&self) -> WeakDesk<M> {
        WeakDesk {
            desk: Arc::downgrade(&self.desk),
            identity: self.desk.identity.clone(),
        }
    }

    pub(crate) fn mortal(&self) -> Arc<dyn Ends> {
        Arc::new(self.weak())
    }
}

impl<M: Send + 'static, T> Recipient<M> for Process<M, T> {
    fn target(&self) -> Target<M> {
        Target::of(self.weak())
    }
}

impl<M: Send> Ends for WeakDesk<M> {
    fn with_ending(&self, f: &mut dyn FnMut(&Ending)) {
        if let Some(desk) = self.desk.upgrade() {
            f(&desk.ending);
        }
    }
}

impl<M: Send + 'static> Sends<M> for WeakDesk<M> {
    /// Nobody knows when a process has handled a message: where that matters, sending is the end
    /// of it.
    fn tell(&self, message: M, mode: Mode) -> Result<(), SendError<M>> {
        let Some(desk) = self.desk.upgrade() else {
            let name = self.identity.name();
            return Err(SendError::new(message, name, Refusal::Closed));
        };
        let sent = match mode {
            Mode::Wait => desk.send_within(message, current_limit()),
            Mode::Try | Mode::Tracked(_) => desk.pushed(desk.mailbox.try_push(message, |_| ())),
            Mode::Beyond => desk.pushed(desk.mailbox.push_beyond(message).map(|then| (then, None))),
            Mode::First => desk.pushed(desk.mailbox.push_urgent(message).map(|then| (then, None))),
        };
        sent.map_err(|refused| desk.error(refused))
    }

    fn identity(&self) -> Option<&Identity> {
        Some(&self.identity)
    }

    fn watch(&self, f: Box<dyn FnOnce() + Send>) {
        match self.desk.upgrade() {
            Some(desk) => drop(desk.ending.watch(Box::new(move |_| f()))),
            None => f(),
        }
    }

    fn has_ended(&self) -> bool {
        let desk = self.desk.upgrade();
        desk.is_none_or(|desk| desk.ending.exit().is_some())
    }
}
