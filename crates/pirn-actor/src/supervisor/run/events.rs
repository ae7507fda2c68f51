//! How a runner handles events.

use super::{Goal, Parent, Runner};
use crate::actor::{Change, Restarts};
use crate::error::{Exit, Failure};
use crate::supervisor::events::{Event, TreeEvent};
use crate::supervisor::plan::Stage;
use std::sync::Arc;
use std::time::Instant;

impl Runner {
    pub(super) fn handle(&mut self, event: Event) {
        self.table.heard();
        match event {
            Event::Changed(i, Change::Ready) => self.ready(i),
            Event::Changed(i, Change::Held(failure)) => self.held(i, failure),
            Event::Ended(i, exit) => self.ended(i, exit),
            Event::Hold if matches!(self.goal, Goal::Up) => self.hold_all(Goal::Hold(None)),
            Event::Hold => {}
            Event::GoOn => self.go_on(),
            Event::Stop => self.end_all(Exit::Stopped),
        }
    }

    fn ready(&mut self, i: usize) {
        let was_new = core::mem::replace(&mut self.children[i].is_new, false);
        if self.statuses[i].stage != Stage::Starting {
            return; // it is to pause or to end
        }
        self.put(i, Stage::Running);
        if !was_new {
            self.table.entries[i].restarted();
            self.report(i, |child| TreeEvent::Restarted { child });
        }
    }

    /// A child has paused: the supervisor told it to, or it has failed.
    fn held(&mut self, i: usize, failure: Option<Failure>) {
        if matches!(self.goal, Goal::End(_)) {
            return; // it was told to end, or will be
        }
        match (self.statuses[i].stage, failure) {
            (Stage::Running | Stage::Starting, Some(failure)) => self.failed(i, failure),
            (Stage::ToStop, Some(failure)) => {
                // It belongs to a restart that was counted already.
                self.put(i, Stage::Down);
                self.report(i, |child| TreeEvent::Failed { child, failure });
            }
            (Stage::Stopping | Stage::Stuck, _) => self.put(i, Stage::Down),
            (
                Stage::Running
                | Stage::Starting
                | Stage::ToStop
                | Stage::Down
                | Stage::Ended
                | Stage::Abandoned,
                _,
            ) => {}
        }
    }

    /// A child has ended: the supervisor told it to, or other code has ended it.
    fn ended(&mut self, i: usize, exit: Exit) {
        self.children[i].is_begun = false;
        let at = self.statuses[i].stage;
        let begins_anew = self.children[i].kind.restarts_after(&exit);
        match at {
            _ if matches!(self.goal, Goal::End(_)) => self.put(i, Stage::Ended),
            Stage::Starting if self.children[i].is_new => self.failed(i, failure_of(exit)),
            Stage::Running | Stage::Starting | Stage::Stuck if begins_anew => {
                self.failed(i, failure_of(exit))
            }
            Stage::ToStop | Stage::Stopping | Stage::Down if begins_anew => {
                self.put(i, Stage::Down)
            }
            _ => {
                self.put(i, Stage::Ended);
                let was_told = at == Stage::Abandoned || at == Stage::Stopping && self.ends(i);
                if !was_told {
                    self.report(i, |child| TreeEvent::Ended { child, exit });
                }
            }
        }
    }

    /// A child has failed: marks those that are restarted with it.
    fn failed(&mut self, i: usize, failure: Failure) {
        let did_not_start = self.children[i].is_new && self.statuses[i].stage == Stage::Starting;
        self.put(i, Stage::Down);
        let why = failure.clone();
        self.report(i, |child| TreeEvent::Failed {
            child,
            failure: why,
        });
        let name = &self.children[i].name;
        if did_not_start {
            let all = format!("{name}: {failure}");
            return self.give_up(i, failure, Failure::new(all));
        }
        let now = Instant::now();
        match self.rules.restarts.count(&mut self.restarted, now) {
            None => {
                let Restarts { most, within, .. } = &self.rules.restarts;
                let all = format!("more than {most} restarts within {within:?}: {name}: {failure}");
                self.give_up(i, failure, Failure::new(all));
            }
            Some(pause) => {
                let due = (!pause.is_zero()).then_some(now + pause);
                for j in self.rules.strategy.affected(i, self.children.len()) {
                    self.mark(j, due);
                }
            }
        }
    }

    /// Fails the supervisor as a whole, since `failure` of this child is one too many.
    fn give_up(&mut self, i: usize, failure: Failure, all: Failure) {
        let mends_above = match &self.parent {
            Parent::Starter(_) => false,
            Parent::Supervisor(reporter) => reporter.holds && !self.children[i].is_new,
        };
        if mends_above {
            return self.hold_all(Goal::Hold(Some(all)));
        }
        if self.is_starting {
            self.not_started = Some((Arc::clone(&self.children[i].name), failure));
        }
        self.end_all(Exit::Failed(all));
    }

    /// Restarts all children for the supervisor above, including those that had ended, as in OTP.
    fn go_on(&mut self) {
        if !matches!(self.goal, Goal::Held) {
            return;
        }
        self.goal = Goal::Up;
        self.is_starting = true;
        self.restarted.clear();
        for i in 0..self.children.len() {
            self.statuses[i].due = None;
            if self.statuses[i].stage == Stage::Ended {
                self.put(i, Stage::Down);
            }
        }
    }
}

/// Returns the failure of a child that has ended like this.
fn failure_of(exit: Exit) -> Failure {
    match exit {
        Exit::Failed(failure) => failure,
        exit => Failure::new(format!("it has ended: {exit}")),
    }
}
