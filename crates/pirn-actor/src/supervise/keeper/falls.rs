//! Children that go down, to pause or to end, and those that do not hear it.

use super::{Aim, Keeper};
use crate::error::Exit;
use crate::mailbox::Phase;
use crate::supervise::events::TreeEvent;
use crate::supervise::plan::At;
use std::time::Instant;

impl Keeper {
    /// Tells a child to pause, or to end, and gives it time.
    pub(super) fn fall(&mut self, i: usize) {
        let ends = self.ends(i);
        self.put(i, At::Falling);
        let child = &mut self.children[i];
        if ends {
            child.node.end(Phase::Stopping);
        } else {
            child.node.hold();
        }
        child.is_killed = false;
        if !child.node.is_tree() {
            let grace = child.grace.unwrap_or(self.rules.grace);
            child.until = Instant::now().checked_add(grace);
        }
    }

    /// Goes on without children that have not heard in time.
    pub(super) fn give_late_ones_up(&mut self) {
        let now = Instant::now();
        for i in 0..self.children.len() {
            let ends = self.ends(i);
            let child = &mut self.children[i];
            if child.until.is_none_or(|until| until > now) {
                continue;
            }
            if ends && !child.is_killed {
                child.is_killed = true;
                child.until = now.checked_add(child.grace.unwrap_or(self.rules.grace));
                child.node.end(Phase::Killing);
                continue;
            }
            self.put(i, if ends { At::Lost } else { At::Stuck });
            self.report(i, |child| TreeEvent::Stuck { child });
        }
    }

    /// Has all children pause.
    pub(super) fn hold_all(&mut self, aim: Aim) {
        self.aim = aim;
        for i in 0..self.children.len() {
            self.doom(i, None);
        }
    }

    /// Has all children end, also those that pause and those that have not heard.
    pub(super) fn end_all(&mut self, exit: Exit) {
        if matches!(self.aim, Aim::End(_)) {
            return;
        }
        self.aim = Aim::End(exit);
        for i in 0..self.children.len() {
            match self.places[i].at {
                At::Over | At::Lost => {}
                _ if self.children[i].is_begun => self.put(i, At::Doomed),
                _ => self.put(i, At::Over),
            }
        }
    }

    /// Has a child restarted with another one, which is not before `due`.
    pub(super) fn doom(&mut self, i: usize, due: Option<Instant>) {
        match self.places[i].at {
            At::Up | At::Rising => self.put(i, At::Doomed),
            At::Down | At::Doomed | At::Falling => {}
            At::Stuck | At::Over | At::Lost => return,
        }
        let place = &mut self.places[i];
        place.due = place.due.max(due);
    }
}
