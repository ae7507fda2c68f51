//! Supervisors: OTP's semantics, as sentences.

mod ends;
mod nested;
mod processes;
mod restarts;
mod siblings;
mod starts;
mod storm;
mod stuck;

use crate::common::Gate;
use pirn::thread;
use pirn_actor::supervisor::{Supervisor, Tree, TreeEvent};
use pirn_actor::{Context, Handler, Ref};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3600);

/// What has happened, in order.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<String>>>);

impl Log {
    fn note(&self, what: impl Into<String>) {
        self.0.lock().unwrap().push(what.into());
    }

    /// Returns what has happened since the last call, with spaces between.
    fn take(&self) -> String {
        std::mem::take(&mut *self.0.lock().unwrap()).join(" ")
    }
}

/// A state that notes when it is made (`+name`) and dropped (`-name`).
struct Part {
    name: &'static str,
    log: Log,
    count: u32,
}

/// Returns a recipe for parts.
fn part(name: &'static str, log: &Log) -> impl FnMut() -> Part + Send + 'static {
    let log = log.clone();
    move || {
        log.note(format!("+{name}"));
        let log = log.clone();
        Part {
            name,
            log,
            count: 0,
        }
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.log.note(format!("-{}", self.name));
    }
}

/// Counts how often the state was asked.
struct Count;

impl Handler<Count> for Part {
    type Reply = u32;
    fn handle(&mut self, _: Count, _: &Context<Self>) -> u32 {
        self.count += 1;
        self.count
    }
}

/// Fails.
struct Fail;

impl Handler<Fail> for Part {
    type Reply = ();
    fn handle(&mut self, _: Fail, _: &Context<Self>) {
        fail(self.name)
    }
}

/// Panics, without a line on standard error.
fn fail(name: &str) {
    resume_unwind(Box::new(format!("{name} fails")));
}

/// Opens the first gate, and then waits at the second one: no interrupt is heard.
struct Wait(Gate, Gate);

impl Handler<Wait> for Part {
    type Reply = ();
    fn handle(&mut self, Wait(begun, gate): Wait, _: &Context<Self>) {
        begun.open();
        gate.wait();
    }
}

/// Opens the gate, and sleeps until it is interrupted.
struct Sleep(Gate);

impl Handler<Sleep> for Part {
    type Reply = bool;
    fn handle(&mut self, Sleep(begun): Sleep, _: &Context<Self>) -> bool {
        begun.open();
        thread::sleep_interruptible(HOUR).is_err()
    }
}

/// Has a child at a message that hears no interrupt, until the gate that is returned opens.
fn keep_busy(child: &Ref<Part>) -> Gate {
    let (begun, gate) = (Gate::new(), Gate::new());
    child.send(Wait(begun.clone(), gate.clone())).unwrap();
    begun.wait();
    gate
}

/// Returns a supervisor that tells what happens.
fn told(supervisor: Supervisor) -> (Supervisor, Events) {
    let (tell, told) = channel();
    let supervisor = supervisor.on_event(move |event| drop(tell.send(event.clone())));
    (supervisor, Events(told))
}

struct Events(Receiver<TreeEvent>);

impl Events {
    /// Waits for the next event, and returns it in short.
    fn next(&self) -> String {
        match self.0.recv().unwrap() {
            TreeEvent::Failed { child, failure, .. } => format!("{child} failed: {failure}"),
            TreeEvent::Restarted { child, .. } => format!("{child} restarted"),
            TreeEvent::Stuck { child, .. } => format!("{child} stuck"),
            TreeEvent::Ended { child, exit, .. } => format!("{child} ended: {exit}"),
            other => format!("{other:?}"),
        }
    }

    /// Waits until these have been restarted, in this order.
    fn await_restarts(&self, names: &[&str]) {
        for name in names {
            while self.next() != format!("{name} restarted") {}
        }
    }
}

/// Starts three parts: a, b, c.
fn three(supervisor: Supervisor) -> (Tree, Events, Log) {
    three_with(supervisor, HOUR)
}

/// Starts three parts, of which b, and no other, has this time to go down.
fn three_with(supervisor: Supervisor, grace: Duration) -> (Tree, Events, Log) {
    let log = Log::default();
    let (supervisor, events) = told(supervisor.grace(HOUR));
    let app = supervisor
        .child("a", part("a", &log))
        .child("b", part("b", &log))
        .child_grace(grace)
        .child("c", part("c", &log))
        .start()
        .unwrap();
    assert_eq!(log.take(), "+a +b +c");
    (app, events, log)
}

fn get(app: &Tree, name: &str) -> Ref<Part> {
    app.get(name).unwrap()
}

fn stop(app: &Tree) {
    app.stop();
    assert_eq!(app.join(), pirn_actor::Exit::Stopped);
}
