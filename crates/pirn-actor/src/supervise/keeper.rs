//! The thread of a supervisor: it hears events one after the other, and then does what follows
//! from where its children are. It waits for events only, never for a child.
//!
//! ```text
//!   event ---> hear: moves children (failed: down; those that belong to it: doomed)
//!                |
//!                v
//!              step: while there is one: tells the next child to go down, or to come up
//!                |
//!                v
//!              waits: for an event, for the end of a backoff, for the time of a child that falls
//! ```
//!
//! Rejected: one restart at a time, with waits in it, as in OTP. A child whose recipe takes long
//! then keeps all others from being restarted, and one that fails while another one comes up and
//! asks it would be waited for by both.

mod falls;
mod hears;

use super::child::{Child, Kind};
use super::error::StartError;
use super::events::{Event, Hook, Reporter, TreeEvent};
use super::plan::{self, At, Place, Strategy};
use super::table::{ChildState, Table};
use crate::actor::{Change, Restarts};
use crate::error::{Exit, Failure, discard};
use crate::snapshot;
use core::time::Duration;
use pirn::thread::Panic;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Instant;

/// What a supervisor was told when it was made.
pub(super) struct Rules {
    pub(super) strategy: Strategy,
    pub(super) restarts: Restarts,
    /// What is wrong when there are more.
    pub(super) too_many: String,
    pub(super) grace: Duration,
    pub(super) hook: Option<Hook>,
}

/// What a supervisor wants of its children.
enum Aim {
    Up,
    /// They pause; then the supervisor above is told, and of the failure if there was one.
    Hold(Option<Failure>),
    /// They pause until that says otherwise.
    Held,
    End(Exit),
}

/// Who hears of the supervisor as a whole.
pub(super) enum Boss {
    /// The thread that starts the tree, until it is ready.
    Starter(Option<Sender<Result<(), StartError>>>),
    /// The supervisor above.
    Above(Reporter),
}

pub(super) struct Keeper {
    table: Arc<Table>,
    rules: Rules,
    children: Vec<Child>,
    /// Where the children are.
    places: Vec<Place>,
    /// When something was restarted, as far as it counts.
    restarted: VecDeque<Instant>,
    aim: Aim,
    /// The children come up in order, whatever the strategy.
    is_starting: bool,
    /// The child that kept the tree from starting.
    not_started: Option<(Arc<str>, Failure)>,
    boss: Boss,
    events: Receiver<Event>,
    sender: Sender<Event>,
}

impl Keeper {
    pub(super) fn new(table: Arc<Table>, rules: Rules, children: Vec<Child>) -> Keeper {
        let (sender, events) = channel();
        Keeper {
            table,
            rules,
            places: vec![Place::NEW; children.len()],
            children,
            restarted: VecDeque::new(),
            aim: Aim::Up,
            is_starting: true,
            not_started: None,
            boss: Boss::Starter(None),
            events,
            sender,
        }
    }

    pub(super) fn table(&self) -> Arc<Table> {
        Arc::clone(&self.table)
    }

    pub(super) fn sender(&self) -> Sender<Event> {
        self.sender.clone()
    }

    pub(super) fn set_boss(&mut self, boss: Boss) {
        if let Boss::Above(reporter) = &boss {
            // Who hears of the tree hears of its branches.
            self.rules.hook = self.rules.hook.take().or_else(|| reporter.hook.clone());
        }
        self.boss = boss;
    }

    /// Runs the tree until it has ended.
    pub(super) fn run(&mut self) -> Exit {
        let seen = Arc::downgrade(&self.table);
        snapshot::enter(&self.table.identity, seen);
        let exit = Panic::catch(|| self.keep());
        snapshot::forget(&self.table.identity);
        exit.unwrap_or_else(|panic| Exit::Failed(Failure::from(&panic)))
    }

    fn keep(&mut self) -> Exit {
        loop {
            if let Some(exit) = self.step() {
                return exit;
            }
            if let Some(event) = self.next_event() {
                self.hear(event);
            }
            self.give_late_ones_up();
        }
    }

    /// Tells the starter that the tree has ended before it was ready. Drops what is the program's.
    pub(super) fn finish(mut self) {
        let sender = match &mut self.boss {
            Boss::Starter(sender) => sender.take(),
            Boss::Above(_) => None,
        };
        let not_started = self.not_started.take();
        self.children.into_iter().for_each(discard);
        if let (Some(sender), Some((child, failure))) = (sender, not_started) {
            let _ = sender.send(Err(StartError::Failed { child, failure }));
        }
    }

    /// Begins again, with all children: those that have ended, and those that never began.
    pub(super) fn reset(&mut self) {
        // What has come since the last end: ends of children, and perhaps a second stop.
        while let Ok(event) = self.events.try_recv() {
            self.hear(event);
        }
        for i in 0..self.children.len() {
            if self.places[i].at != At::Lost {
                self.children[i].is_new = true;
                self.put(i, At::Down);
            }
        }
        self.restarted.clear();
        self.not_started = None;
        self.aim = Aim::Up;
        self.is_starting = true;
    }

    fn next_event(&self) -> Option<Event> {
        let now = Instant::now();
        let falls = self.children.iter().filter_map(|child| child.until);
        let wait = falls.chain(plan::next_due(&self.places, now)).min();
        let event = match wait {
            None => self
                .events
                .recv()
                .map_err(|_| RecvTimeoutError::Disconnected),
            Some(at) => self.events.recv_timeout(at.saturating_duration_since(now)),
        };
        event.ok()
    }

    /// Does what is to be done now. Returns the exit if the tree has ended.
    fn step(&mut self) -> Option<Exit> {
        loop {
            let together = self.is_starting
                || self.rules.strategy != Strategy::OneForOne
                || !matches!(self.aim, Aim::Up);
            if let Some(i) = plan::next_down(&self.places, together) {
                self.fall(i);
                continue;
            }
            match &mut self.aim {
                Aim::Up => match plan::next_up(&self.places, together, Instant::now()) {
                    Some(i) => self.rise(i),
                    None => {
                        self.note_start();
                        return None;
                    }
                },
                Aim::Hold(failure) => {
                    if self.places.iter().any(|place| place.at == At::Falling) {
                        return None;
                    }
                    let held = Change::Held(failure.take());
                    self.aim = Aim::Held;
                    self.tell_boss(held);
                }
                Aim::Held => return None,
                Aim::End(exit) => {
                    let is_over = |place: &Place| matches!(place.at, At::Over | At::Lost);
                    return self.places.iter().all(is_over).then(|| exit.clone());
                }
            }
        }
    }

    /// Begins a child, or has it begin anew.
    fn rise(&mut self, i: usize) {
        self.put(i, At::Rising);
        let reporter = Reporter {
            child: i,
            holds: self.children[i].kind != Kind::Temporary,
            events: self.sender.clone(),
            path: self.path(i),
            hook: self.rules.hook.clone(),
        };
        let child = &mut self.children[i];
        if core::mem::replace(&mut child.is_begun, true) {
            child.node.go_on();
        } else if let Err(failure) = child.node.begin(&child.name, reporter) {
            self.hear(Event::Ended(i, Exit::Failed(failure)));
        }
    }

    /// Notes that all children are ready, if they are.
    fn note_start(&mut self) {
        if self.is_starting && self.places.iter().all(|place| place.at.is_settled()) {
            self.is_starting = false;
            self.tell_boss(Change::Ready);
        }
    }

    fn tell_boss(&mut self, change: Change) {
        match &mut self.boss {
            Boss::Starter(sender) => {
                if let Some(sender) = sender.take() {
                    let _ = sender.send(Ok(()));
                }
            }
            Boss::Above(reporter) => reporter.changed(change),
        }
    }

    /// Puts a child somewhere, for people as well.
    fn put(&mut self, i: usize, at: At) {
        let place = &mut self.places[i];
        place.at = at;
        if at != At::Down && at != At::Doomed && at != At::Falling {
            place.due = None;
        }
        self.children[i].until = None;
        let state = ChildState::of(at, self.children[i].is_new, self.ends(i));
        self.table.entries[i].set(state);
    }

    /// Returns true if a child that goes down ends.
    fn ends(&self, i: usize) -> bool {
        matches!(self.aim, Aim::End(_)) || self.children[i].kind == Kind::Temporary
    }

    /// Returns a child's name, after those of the supervisors that it is under.
    fn path(&self, i: usize) -> Arc<str> {
        let name = &self.children[i].name;
        match &self.boss {
            Boss::Starter(_) => Arc::clone(name),
            Boss::Above(reporter) => format!("{}/{name}", reporter.path).into(),
        }
    }

    /// Tells the program what has happened to a child.
    fn report(&self, i: usize, event: impl FnOnce(Arc<str>) -> TreeEvent) {
        if let Some(hook) = &self.rules.hook {
            let event = event(self.path(i));
            // Its panic has been reported by the panic hook, and is nothing to the tree.
            let _ = Panic::catch(|| hook(&event));
        }
    }
}
