//! Processes that are children.

use super::{HOUR, fail, stop, told};
use crate::common::{Gate, watched};
use pirn::thread;
use pirn_actor::process::{Inbox, Process, RecvError};
use pirn_actor::reply::ReplyTo;
use pirn_actor::supervisor::{Supervisor, Tree};
use pirn_actor::{AskError, Exit, Ref, receive};
use std::sync::mpsc;

enum Message {
    Add(u32, ReplyTo<u32>),
    Fail,
    Later(u32),
    /// Opens the gate, and answers with what comes later.
    Take(Gate, ReplyTo<u32>),
    Sleep(Gate),
    Return,
}

use Message::{Add, Fail, Later, Return, Sleep, Take};

fn sum(inbox: &mut Inbox<Message>) {
    let _ = try_sum(inbox);
}

fn try_sum(inbox: &mut Inbox<Message>) -> Result<(), RecvError> {
    let mut sum = 0;
    loop {
        receive!(inbox => {
            Add(n, reply) => {
                sum += n;
                reply.send(sum);
            }
            Fail => fail("sum"),
            Take(begun, reply) => {
                begun.open();
                receive!(inbox => { Later(n) => reply.send(n) })
            }
            Sleep(begun) => {
                begun.open();
                let _ = thread::sleep_interruptible(HOUR);
            }
            Return => return Ok(()),
        });
    }
}

fn get(app: &Tree) -> Process<Message> {
    app.get("sum").unwrap()
}

#[watched]
fn a_process_that_panics_runs_again_and_keeps_its_mailbox() {
    let (supervisor, events) = told(Supervisor::one_for_one());
    let app = supervisor.process("sum", sum).start().unwrap();
    let process = get(&app);
    assert_eq!(process.ask(|reply| Add(5, reply)), Ok(5));
    // One is put aside by the receive before the failure.
    process.send(Later(8)).unwrap();
    process.send(Fail).unwrap();
    let added = process.ask_later(|reply| Add(1, reply)).unwrap();
    let gate = Gate::new();
    let taken = process.ask_later(|reply| Take(gate, reply)).unwrap();
    assert_eq!(added.recv(), Ok(1), "from the beginning");
    assert_eq!(taken.recv(), Ok(8), "it was put aside, and has stayed");
    assert_eq!(events.next(), "sum failed: panicked: sum fails");
    assert_eq!(events.next(), "sum restarted");
    stop(&app);
    assert_eq!(process.join(), Exit::Stopped);
}

#[watched]
fn a_process_is_restarted_with_others_whatever_it_waits_for() {
    let (supervisor, events) = told(Supervisor::one_for_all().restarts(9, HOUR));
    let app = supervisor
        .child("other", || 0)
        .process("sum", sum)
        .start()
        .unwrap();
    let process = get(&app);
    let other = app.get::<Ref<i32>>("other").unwrap();
    // In a receive.
    assert_eq!(process.ask(|reply| Add(5, reply)), Ok(5));
    assert!(other.run(|_| fail("other")).is_err());
    events.await_restarts(&["other", "sum"]);
    assert_eq!(process.ask(|reply| Add(5, reply)), Ok(5));
    // In a sleep.
    let begun = Gate::new();
    process.send(Sleep(begun.clone())).unwrap();
    let later = process.ask_later(|reply| Add(7, reply)).unwrap();
    begun.wait();
    assert!(other.run(|_| fail("other")).is_err());
    events.await_restarts(&["other", "sum"]);
    assert_eq!(later.recv(), Ok(7));
    // In a receive within another one.
    let begun = Gate::new();
    let take = |reply| Take(begun.clone(), reply);
    let taken = process.ask_later(take).unwrap();
    begun.wait();
    assert!(other.run(|_| fail("other")).is_err());
    events.await_restarts(&["other", "sum"]);
    let ended = taken.recv();
    assert!(matches!(ended, Err(AskError::Gone)), "{ended:?}");
    assert_eq!(process.ask(|reply| Add(7, reply)), Ok(7));
    stop(&app);
}

#[watched]
fn a_process_that_returns_has_ended_and_is_replaced() {
    let (supervisor, events) = told(Supervisor::one_for_one());
    let app = supervisor.process("sum", sum).start().unwrap();
    let before = get(&app);
    before.send(Return).unwrap();
    assert_eq!(before.join(), Exit::Closed);
    assert_eq!(events.next(), "sum failed: it has ended: closed");
    assert_eq!(events.next(), "sum restarted");
    assert_eq!(get(&app).ask(|reply| Add(3, reply)), Ok(3));
}

#[watched]
fn a_held_process_can_be_stopped_and_killed() {
    for kill in [false, true] {
        let (supervisor, events) = told(Supervisor::one_for_one().backoff(HOUR..HOUR));
        let app = supervisor.process("sum", sum).transient().start().unwrap();
        let process = get(&app);
        process.send(Fail).unwrap();
        assert_eq!(events.next(), "sum failed: panicked: sum fails");
        let waits = process.ask_later(|reply| Add(7, reply)).unwrap();
        if kill {
            process.kill();
            assert_eq!(process.join(), Exit::Killed);
        } else {
            process.stop();
            assert_eq!(process.join(), Exit::Stopped);
        }
        assert_eq!(waits.recv(), Err(AskError::Gone));
        stop(&app);
    }
}

#[watched]
fn a_temporary_process_that_panics_has_failed() {
    let (supervisor, events) = told(Supervisor::one_for_one());
    let (begun, begins) = mpsc::channel();
    let app = supervisor
        .process("sum", move |inbox| {
            begun.send(()).unwrap();
            sum(inbox);
        })
        .temporary()
        .start()
        .unwrap();
    get(&app).send(Fail).unwrap();
    assert_eq!(events.next(), "sum ended: failed: panicked: sum fails");
    stop(&app);
    assert_eq!(begins.try_iter().count(), 1);
}
