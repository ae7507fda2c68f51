//! The runner: the thread of a supervisor. It handles events one after the other, and then acts on
//! the stages of its children. It waits for events only, never for a child.
//!
//! ```text
//!   event ---> handle: moves children (the failed one: down; those that restart with it: to stop)
//!                |
//!                v
//!              step: takes the next child down, or brings it up, until none is left
//!                |
//!                v
//!              waits: for an event, the end of a backoff, the grace of a child that is stopping
//! ```
//!
//! Rejected: one restart at a time, with waits in it, as in OTP. A child whose recipe takes long
//! then keeps all others from being restarted, and if a child fails while another one starts and
//! asks it, the supervisor would wait for both.

use super::events::{Event, Hook, Reporter, TreeEvent};
use super::node::Start;
use super::plan::{self, Stage, Status, Strategy};
use super::table::{ChildState, Table, What};
use crate::actor::{Builder, Change, Restarts};
use crate::error::{Exit, Failure, discard};
use crate::life::Actor;
use crate::mailbox::Phase;
use crate::snapshot;
use core::time::Duration;
use pirn::thread::Panic;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Instant;

/// The settings of a supervisor.
pub(super) struct Rules {
    pub(super) strategy: Strategy,
    pub(super) restarts: Restarts,
    pub(super) grace: Duration,
    pub(super) hook: Option<Hook>,
}

/// The state that a supervisor wants for its children.
enum Goal {
    Up,
    /// Paused; then the supervisor above is told, with the failure if there was one.
    Hold(Option<Failure>),
    /// Paused until the supervisor above says otherwise.
    Held,
    End(Exit),
}

pub(super) struct Runner {
    table: Arc<Table>,
    rules: Rules,
    children: Vec<Child>,
    /// The stages of the children.
    statuses: Vec<Status>,
    /// When children were restarted, as far back as `restarts` counts.
    restarted: VecDeque<Instant>,
    goal: Goal,
    /// The children start in order, whatever the strategy.
    is_starting: bool,
    /// The child that kept the tree from starting.
    pub(super) not_started: Option<(Arc<str>, Failure)>,
    /// The supervisor above, or the thread that starts the tree. Set when this begins.
    parent: Option<Reporter>,
    events: Receiver<Event>,
}

impl Runner {
    pub(super) fn new(
        table: Arc<Table>,
        rules: Rules,
        children: Vec<Child>,
        events: Receiver<Event>,
    ) -> Runner {
        Runner {
            table,
            rules,
            statuses: vec![Status::NEW; children.len()],
            children,
            restarted: VecDeque::new(),
            goal: Goal::Up,
            is_starting: true,
            not_started: None,
            parent: None,
            events,
        }
    }

    /// Runs the tree until it has ended.
    pub(super) fn run(&mut self) -> Exit {
        let seen = Arc::downgrade(&self.table);
        snapshot::enter(self.table.identity(), seen);
        let exit = Panic::catch(|| self.keep());
        snapshot::forget(self.table.identity());
        exit.unwrap_or_else(|panic| Exit::Failed(Failure::from(&panic)))
    }

    fn keep(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.step() {
                return exit;
            }
            if let Some(event) = self.next_event() {
                self.handle(event);
            }
            self.give_up_late();
        }
    }

    /// Drops the children, which have ended for good.
    pub(super) fn finish(&mut self) {
        self.children.drain(..).for_each(discard);
    }

    /// Starts over with all children, including those that have ended and those that never began,
    /// and reports to this parent.
    pub(super) fn begin_again(&mut self, parent: Reporter) {
        // Handles the events since the last end: ends of children, and perhaps a second stop.
        while let Ok(event) = self.events.try_recv() {
            self.handle(event);
        }
        for i in 0..self.children.len() {
            if self.statuses[i].stage != Stage::Abandoned {
                self.children[i].is_new = true;
                self.put(i, Stage::Down);
            }
        }
        self.restarted.clear();
        self.not_started = None;
        self.goal = Goal::Up;
        self.is_starting = true;
        // The hook of the tree above, unless this supervisor has its own.
        self.rules.hook = self.rules.hook.take().or_else(|| parent.hook.clone());
        self.parent = Some(parent);
    }

    fn next_event(&self) -> Option<Event> {
        let now = Instant::now();
        let falls = self.children.iter().filter_map(|child| child.until);
        let wait = falls.chain(plan::next_due(&self.statuses, now)).min();
        let event = match wait {
            None => self
                .events
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => self.events.recv_timeout(at.saturating_duration_since(now)),
        };
        event.ok()
    }

    /// Acts on the stages until there is nothing to do. Returns the exit if the tree has ended.
    fn step(&mut self) -> Option<Exit> {
        loop {
            let together = self.is_starting
                || self.rules.strategy != Strategy::OneForOne
                || !matches!(self.goal, Goal::Up);
            if let Some(i) = plan::next_down(&self.statuses, together) {
                self.take_down(i);
                continue;
            }
            match &mut self.goal {
                Goal::Up => match plan::next_up(&self.statuses, together, Instant::now()) {
                    Some(i) => self.bring_up(i),
                    None => {
                        self.note_start();
                        return None;
                    }
                },
                Goal::Hold(failure) => {
                    if self
                        .statuses
                        .iter()
                        .any(|status| status.stage == Stage::Stopping)
                    {
                        return None;
                    }
                    let held = Change::Held(failure.take());
                    self.goal = Goal::Held;
                    self.tell_parent(held);
                }
                Goal::Held => return None,
                Goal::End(exit) => {
                    let is_over =
                        |status: &Status| matches!(status.stage, Stage::Ended | Stage::Abandoned);
                    return self.statuses.iter().all(is_over).then(|| exit.clone());
                }
            }
        }
    }

    /// Starts a child, or restarts it.
    fn bring_up(&mut self, i: usize) {
        self.put(i, Stage::Starting);
        if let Some(actor) = &self.children[i].actor {
            return actor.go_on();
        }
        let reporter = Reporter {
            child: i,
            holds: self.children[i].kind != Kind::Temporary,
            events: self.table.events.clone(),
            path: format!("{}/", self.path(i)),
            hook: self.rules.hook.clone(),
        };
        let child = &mut self.children[i];
        let builder = child.builder.clone().name(Arc::clone(&child.name));
        match (child.start)(builder, reporter) {
            Ok(actor) => child.actor = Some(actor),
            Err(error) => {
                let failure = Failure::new(error.to_string());
                self.handle(Event::Ended(i, Exit::Failed(failure)));
            }
        }
    }

    /// Reports that the tree has started if all children are ready.
    fn note_start(&mut self) {
        if self.is_starting && self.statuses.iter().all(|status| status.stage.is_settled()) {
            self.is_starting = false;
            self.tell_parent(Change::Ready);
        }
    }

    fn tell_parent(&self, change: Change) {
        if let Some(parent) = &self.parent {
            parent.changed(change);
        }
    }

    /// Sets the stage of a child, and its state in the table.
    fn put(&mut self, i: usize, stage: Stage) {
        let status = &mut self.statuses[i];
        status.stage = stage;
        if !matches!(stage, Stage::Down | Stage::ToStop | Stage::Stopping) {
            status.due = None;
        }
        self.children[i].until = None;
        let state = ChildState::of(stage, self.children[i].is_new, self.ends(i));
        self.table.entries[i].set(state);
    }

    /// Returns true if a child that is taken down ends, and does not pause.
    fn ends(&self, i: usize) -> bool {
        matches!(self.goal, Goal::End(_)) || self.children[i].kind == Kind::Temporary
    }

    /// Returns a child's name, prefixed with the names of the supervisors above it.
    fn path(&self, i: usize) -> Arc<str> {
        let above = self.parent.as_ref().map_or("", |parent| &parent.path);
        format!("{above}{}", self.children[i].name).into()
    }

    /// Calls the hook with an event of a child.
    fn report(&self, i: usize, event: impl FnOnce(Arc<str>) -> TreeEvent) {
        if let Some(hook) = &self.rules.hook {
            let event = event(self.path(i));
            // The panic hook has reported its panic, which does not concern the tree.
            let _ = Panic::catch(|| hook(&event));
        }
    }
}

/// When a child that has ended is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Permanent,
    Transient,
    Temporary,
}

impl Kind {
    pub(super) fn restarts_after(self, exit: &Exit) -> bool {
        match self {
            Kind::Permanent => true,
            Kind::Transient => !matches!(exit, Exit::Closed | Exit::Stopped),
            Kind::Temporary => false,
        }
    }
}

/// A child, for its supervisor's runner.
pub(super) struct Child {
    pub(super) name: Arc<str>,
    pub(super) kind: Kind,
    pub(super) start: Start,
    /// Set when the child has begun, until it has ended.
    pub(super) actor: Option<Arc<dyn Actor>>,
    /// The builder of the child's actor.
    pub(super) builder: Builder,
    /// The time that it may take to go down, if it is not the supervisor's.
    pub(super) grace: Option<Duration>,
    /// It was never ready.
    pub(super) is_new: bool,
    /// While it is going down: the time limit, and whether it was killed.
    pub(super) until: Option<Instant>,
    pub(super) is_killed: bool,
}

impl Child {
    pub(super) fn new(name: Arc<str>, start: Start) -> Child {
        Child {
            name,
            kind: Kind::Permanent,
            start,
            actor: None,
            builder: Builder::new(),
            grace: None,
            is_new: true,
            until: None,
            is_killed: false,
        }
    }
}

impl Runner {
    fn handle(&mut self, event: Event) {
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
        self.children[i].actor = None;
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
        let mends_above = self.parent.as_ref().is_some_and(|parent| parent.holds);
        if mends_above && !self.children[i].is_new {
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

impl Runner {
    /// Tells a child to pause or to end, and sets its time limit.
    fn take_down(&mut self, i: usize) {
        let ends = self.ends(i);
        self.put(i, Stage::Stopping);
        let child = &mut self.children[i];
        if let Some(actor) = &child.actor {
            match ends {
                true => actor.end(Phase::Stopping),
                false => actor.hold(),
            }
        }
        child.is_killed = false;
        // A supervisor limits the time that its own children take.
        if !matches!(self.table.entries[i].what, What::Tree(_)) {
            let grace = child.grace.unwrap_or(self.rules.grace);
            child.until = Instant::now().checked_add(grace);
        }
    }

    /// Continues without children that have not paused or ended in time.
    fn give_up_late(&mut self) {
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
                if let Some(actor) = &child.actor {
                    actor.end(Phase::Killing);
                }
                continue;
            }
            self.put(i, if ends { Stage::Abandoned } else { Stage::Stuck });
            self.report(i, |child| TreeEvent::Stuck { child });
        }
    }

    /// Pauses all children.
    fn hold_all(&mut self, goal: Goal) {
        self.goal = goal;
        for i in 0..self.children.len() {
            self.mark(i, None);
        }
    }

    /// Ends all children, including paused and stuck ones.
    fn end_all(&mut self, exit: Exit) {
        if matches!(self.goal, Goal::End(_)) {
            return;
        }
        self.goal = Goal::End(exit);
        for i in 0..self.children.len() {
            match self.statuses[i].stage {
                Stage::Ended | Stage::Abandoned => {}
                _ if self.children[i].actor.is_some() => self.put(i, Stage::ToStop),
                _ => self.put(i, Stage::Ended),
            }
        }
    }

    /// Marks a child for a restart with another one, not before `due`.
    fn mark(&mut self, i: usize, due: Option<Instant>) {
        match self.statuses[i].stage {
            Stage::Running | Stage::Starting => self.put(i, Stage::ToStop),
            Stage::Down | Stage::ToStop | Stage::Stopping => {}
            Stage::Stuck | Stage::Ended | Stage::Abandoned => return,
        }
        let status = &mut self.statuses[i];
        status.due = status.due.max(due);
    }
}
