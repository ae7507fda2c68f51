//! What a supervisor makes of what it hears.

use super::{Aim, Boss, Keeper};
use crate::actor::Change;
use crate::error::{Exit, Failure};
use crate::supervise::events::{Event, TreeEvent};
use crate::supervise::plan::At;
use std::sync::Arc;
use std::time::Instant;

impl Keeper {
    pub(super) fn hear(&mut self, event: Event) {
        self.table.heard();
        match event {
            Event::Changed(i, Change::Ready) => self.ready(i),
            Event::Changed(i, Change::Held(failure)) => self.held(i, failure),
            Event::Ended(i, exit) => self.ended(i, exit),
            Event::Hold if matches!(self.aim, Aim::Up) => self.hold_all(Aim::Hold(None)),
            Event::Hold => {}
            Event::GoOn => self.go_on(),
            Event::Stop => self.end_all(Exit::Stopped),
        }
    }

    fn ready(&mut self, i: usize) {
        let was_new = core::mem::replace(&mut self.children[i].is_new, false);
        if self.places[i].at != At::Rising {
            return; // it is to pause or to end
        }
        self.put(i, At::Up);
        if !was_new {
            self.table.entries[i].restarted();
            self.report(i, |child| TreeEvent::Restarted { child });
        }
    }

    /// A child has paused: because it was told, or by a failure.
    fn held(&mut self, i: usize, failure: Option<Failure>) {
        if matches!(self.aim, Aim::End(_)) {
            return; // it is told to end, or will be
        }
        match (self.places[i].at, failure) {
            (At::Up | At::Rising, Some(failure)) => self.failed(i, failure),
            (At::Doomed, Some(failure)) => {
                // It is part of a restart, which has been counted.
                self.put(i, At::Down);
                self.report(i, |child| TreeEvent::Failed { child, failure });
            }
            (At::Falling | At::Stuck, _) => self.put(i, At::Down),
            (At::Up | At::Rising | At::Doomed | At::Down | At::Over | At::Lost, _) => {}
        }
    }

    /// A child has ended: because it was told, or other code has ended it.
    fn ended(&mut self, i: usize, exit: Exit) {
        self.children[i].is_begun = false;
        let at = self.places[i].at;
        let begins_anew = self.children[i].kind.restarts_after(&exit);
        match at {
            _ if matches!(self.aim, Aim::End(_)) => self.put(i, At::Over),
            At::Rising if self.children[i].is_new => self.failed(i, failure_of(exit)),
            At::Up | At::Rising | At::Stuck if begins_anew => self.failed(i, failure_of(exit)),
            At::Doomed | At::Falling | At::Down if begins_anew => self.put(i, At::Down),
            _ => {
                self.put(i, At::Over);
                let was_told = at == At::Lost || at == At::Falling && self.ends(i);
                if !was_told {
                    self.report(i, |child| TreeEvent::Ended { child, exit });
                }
            }
        }
    }

    /// A child has failed, and so have those that are restarted with it.
    fn failed(&mut self, i: usize, failure: Failure) {
        let did_not_start = self.children[i].is_new && self.places[i].at == At::Rising;
        self.put(i, At::Down);
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
                let all = format!("{}: {name}: {failure}", self.rules.too_many);
                self.give_up(i, failure, Failure::new(all));
            }
            Some(pause) => {
                let due = (!pause.is_zero()).then_some(now + pause);
                for j in self.rules.strategy.affected(i, self.children.len()) {
                    self.doom(j, due);
                }
            }
        }
    }

    /// The supervisor has failed as a whole: `failure` of this child is more than it can mend.
    fn give_up(&mut self, i: usize, failure: Failure, all: Failure) {
        let mends_above = match &self.boss {
            Boss::Starter(_) => false,
            Boss::Above(reporter) => reporter.holds && !self.children[i].is_new,
        };
        if mends_above {
            return self.hold_all(Aim::Hold(Some(all)));
        }
        if self.is_starting {
            self.not_started = Some((Arc::clone(&self.children[i].name), failure));
        }
        self.end_all(Exit::Failed(all));
    }

    /// The supervisor above has all children begin anew: as in OTP, also those that had ended.
    fn go_on(&mut self) {
        if !matches!(self.aim, Aim::Held) {
            return;
        }
        self.aim = Aim::Up;
        self.is_starting = true;
        self.restarted.clear();
        for i in 0..self.children.len() {
            self.places[i].due = None;
            if self.places[i].at == At::Over {
                self.put(i, At::Down);
            }
        }
    }
}

/// Returns what is wrong with a child that has ended in this way.
fn failure_of(exit: Exit) -> Failure {
    match exit {
        Exit::Failed(failure) => failure,
        exit => Failure::new(format!("it has ended: {exit}")),
    }
}
