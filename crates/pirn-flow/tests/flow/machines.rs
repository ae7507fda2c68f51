//! State machines.

use crate::common::watched;
use Event::{Pull, Push, Turn};
use State::{Closed, Locked, Open};
use pirn_actor::{self as actor, AskError, Exit, Ref};
use pirn_flow::machine::{Change, EventError, Machine, Template, TemplateError};
use std::sync::{Arc, Mutex, mpsc};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum State {
    Open,
    Closed,
    Locked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Event {
    Push,
    Pull,
    Turn,
}

fn door() -> Template<State, Event> {
    Machine::template()
        .on(Closed, Push, Open)
        .on(Open, Pull, Closed)
        .on(Closed, Turn, Locked)
        .on(Locked, Turn, Closed)
}

type Notes = Arc<Mutex<Vec<String>>>;

fn noting(notes: &Notes, what: &'static str) -> impl Fn(&Change<State, Event>) + use<> {
    let notes = Arc::clone(notes);
    move |change| {
        let (from, event, to) = (change.from, change.event, change.to);
        let note = format!("{what} {from:?} {event:?} {to:?}");
        notes.lock().unwrap().push(note);
    }
}

/// The state of a machine that is an actor.
fn state(door: &Ref<Machine<State, Event>>) -> Result<State, AskError> {
    door.run(|machine| *machine.state())
}

#[watched]
fn an_unexpected_event_is_an_error_and_changes_nothing() {
    let mut door = door().build().unwrap().machine(Locked);
    let error = door.on_event(Push).unwrap_err();
    let (state, event) = (Locked, Push);
    assert_eq!(error, EventError::Unexpected { state, event });
    assert_eq!(
        error.to_string(),
        "Push is not expected in the state Locked"
    );
    assert_eq!(*door.state(), Locked);
}

#[watched]
fn a_machine_may_stay_on_unexpected_events() {
    let notes = Notes::default();
    let template = door()
        .leaving(Locked, noting(&notes, "leaving"))
        .stay_on_unexpected();
    let mut door = template.build().unwrap().machine(Locked);
    assert_eq!(door.on_event(Push), Ok(Locked));
    assert!(notes.lock().unwrap().is_empty());
}

#[watched]
fn hooks_are_called_in_order() {
    let notes = Notes::default();
    let note = noting(&notes, "before");
    let asked = move |change: &_| -> Result<(), String> {
        note(change);
        Ok(())
    };
    let mut machine = door()
        .entering(Open, noting(&notes, "entering"))
        .entering(Locked, noting(&notes, "never"))
        .leaving(Closed, noting(&notes, "leaving"))
        .before(asked)
        .after(noting(&notes, "after"))
        .build()
        .unwrap()
        .machine(Closed);
    assert_eq!(machine.on_event(Push), Ok(Open));
    let expected = ["before", "leaving", "entering", "after"];
    assert_eq!(
        *notes.lock().unwrap(),
        expected.map(|what| format!("{what} Closed Push Open"))
    );
}

#[watched]
fn a_refusal_keeps_the_state_and_calls_no_hook() {
    let notes = Notes::default();
    let mut door = door()
        .leaving(Closed, noting(&notes, "leaving"))
        .before(|change| match change.to {
            Locked => Err("the key is lost"),
            _ => Ok(()),
        })
        .build()
        .unwrap()
        .machine(Closed);
    let Err(EventError::Refused { state, event, why }) = door.on_event(Turn) else {
        panic!("it is refused")
    };
    assert_eq!((state, event), (Closed, Turn));
    assert_eq!(why, "the key is lost");
    assert!(notes.lock().unwrap().is_empty());
    assert_eq!(door.on_event(Push), Ok(Open));
}

#[watched]
fn a_guard_that_asks_the_machine_is_a_deadlock_and_refuses() {
    let (give, given) = mpsc::channel();
    let asked = actor::function(move |_: Change<State, Event>| {
        let door = given.recv().unwrap();
        state(&door).map(drop).map_err(|error| error.to_string())
    });
    let guard = move |change: &_| asked.ask(*change).map_err(|error| error.to_string())?;
    let door = actor::spawn(door().before(guard).build().unwrap().machine(Closed));
    give.send(door.clone()).unwrap();
    let Err(EventError::Refused { why, .. }) = door.ask(Push).unwrap() else {
        panic!("it is refused")
    };
    assert!(why.contains("deadlock"), "{why}");
}

#[watched]
fn a_machine_can_jump_without_hooks_but_not_to_nowhere() {
    let notes = Notes::default();
    let rules = door()
        .states([Open, Closed, Locked])
        .entering(Locked, noting(&notes, "entering"))
        .build()
        .unwrap();
    let mut door = rules.machine(Open);
    assert_eq!(door.jump(Locked), Some(Open));
    assert_eq!(*door.state(), Locked);
    assert!(notes.lock().unwrap().is_empty());
    let rules = Machine::template().on(1, '+', 2).build().unwrap();
    let mut two = rules.machine(1);
    assert_eq!(two.jump(3), None);
    assert_eq!(*two.state(), 1);
}

#[watched]
fn what_is_wrong_with_a_template_is_found_when_it_is_built() {
    let unknown = door().states([Open, Closed]).build();
    assert_eq!(unknown.unwrap_err(), TemplateError::UnknownState(Locked));
    let never_reached = Machine::template()
        .on(Open, Pull, Closed)
        .entering(Locked, |_| ())
        .build();
    let unknown = TemplateError::UnknownState(Locked);
    assert_eq!(never_reached.unwrap_err(), unknown);
    let (state, event) = (Closed, Push);
    let twice = door().on(Closed, Push, Locked).build();
    assert_eq!(
        twice.unwrap_err(),
        TemplateError::TwoTargets { state, event }
    );
    let none = Machine::<State, Event>::template().build();
    assert_eq!(none.unwrap_err(), TemplateError::TooFewStates);
    let one = Machine::template().states([1]).on(1, '+', 1).build();
    assert_eq!(one.unwrap_err(), TemplateError::TooFewStates);
}

#[watched]
#[should_panic(expected = "there is no state 3")]
fn a_machine_begins_in_a_state_that_there_is() {
    let rules = Machine::template().on(1, '+', 2).build().unwrap();
    rules.machine(3);
}

#[watched]
fn a_panic_of_a_hook_leaves_one_state_or_the_other() {
    let rules = door()
        .leaving(Closed, |change| assert_ne!(change.event, Push, "leaving"))
        .entering(Locked, |_| panic!("entering"))
        .build()
        .unwrap();
    for (event, state) in [(Push, Closed), (Turn, Locked)] {
        let mut machine = rules.machine(Closed);
        let panicked = pirn::thread::scope(|scope| {
            let event = || drop(machine.on_event(event));
            scope.spawn(event).join().is_err()
        });
        assert!(panicked);
        assert_eq!(*machine.state(), state);
    }
    let door = actor::spawn(rules.machine(Closed));
    assert!(matches!(door.ask(Push), Err(AskError::Failed(_))));
    assert!(matches!(door.join(), Exit::Failed(_)));
}
