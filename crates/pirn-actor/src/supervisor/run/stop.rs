//! How a runner takes children down, and leaves those that do not stop in time.

use super::{Goal, Runner};
use crate::error::Exit;
use crate::mailbox::Phase;
use crate::supervisor::events::TreeEvent;
use crate::supervisor::plan::Stage;
use std::time::Instant;

impl Runner {
    /// Tells a child to pause or to end, and sets its time limit.
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

    /// Continues without children that have not paused or ended in time.
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

    /// Pauses all children.
    pub(super) fn hold_all(&mut self, goal: Goal) {
        self.goal = goal;
        for i in 0..self.children.len() {
            self.mark(i, None);
        }
    }

    /// Ends all children, including paused and stuck ones.
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

    /// Marks a child for a restart with another one, not before `due`.
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
