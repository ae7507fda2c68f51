//! Children that go down, to pause or to end, and those that do not hear it.

use super::{Goal, Runner};
use crate::error::Exit;
use crate::mailbox::Phase;
use crate::supervisor::events::TreeEvent;
use crate::supervisor::plan::Stage;
use std::time::Instant;

impl Runner {
    /// Tells a child to pause, or to end, and gives it time.
    pub(super) fn take_down(&mut self, i: usize) {
        let ends = self.ends(i);
        self.put(i, Stage::Stopping);
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
    pub(super) fn give_up_late(&mut self) {
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
            self.put(i, if ends { Stage::Abandoned } else { Stage::Stuck });
            self.report(i, |child| TreeEvent::Stuck { child });
        }
    }

    /// Has all children pause.
    pub(super) fn hold_all(&mut self, goal: Goal) {
        self.goal = goal;
        for i in 0..self.children.len() {
            self.mark(i, None);
        }
    }

    /// Has all children end, also those that pause and those that have not heard.
    pub(super) fn end_all(&mut self, exit: Exit) {
        if matches!(self.goal, Goal::End(_)) {
            return;
        }
        self.goal = Goal::End(exit);
        for i in 0..self.children.len() {
            match self.statuses[i].stage {
                Stage::Ended | Stage::Abandoned => {}
                _ if self.children[i].is_begun => self.put(i, Stage::ToStop),
                _ => self.put(i, Stage::Ended),
            }
        }
    }

    /// Has a child restarted with another one, which is not before `due`.
    pub(super) fn mark(&mut self, i: usize, due: Option<Instant>) {
        match self.statuses[i].stage {
            Stage::Running | Stage::Starting => self.put(i, Stage::ToStop),
            Stage::Down | Stage::ToStop | Stage::Stopping => {}
            Stage::Stuck | Stage::Ended | Stage::Abandoned => return,
        }
        let status = &mut self.statuses[i];
        status.due = status.due.max(due);
    }
}
