//! State machines.

use crate::common::watched;
use Event::{Pull, Push, Turn};
use State::{Closed, Locked, Open};
use pirn_actor::{
    self as actor, AskError, Builder, EventError, Exit, Machine, MachineTemplate, StateChange,
    TemplateError,
};
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

fn door() -> MachineTemplate<State, Event> {
    Machine::template()
        .on(Closed, Push, Open)
        .on(Open, Pull, Closed)
        .on(Closed, Turn, Locked)
        .on(Locked, Turn, Closed)
}

type Notes = Arc<Mutex<Vec<String>>>;

fn noting(notes: &Notes, what: &'static str) -> impl Fn(&StateChange<State, Event>) + use<> {
    let notes = Arc::clone(notes);
    move |change| {
        let (from, event, to) = (change.from, change.event, change.to);
        let note = format!("{what} {from:?} {event:?} {to:?}");
        notes.lock().unwrap().push(note);
    }
}

#[watched]
fn events_lead_from_state_to_state() {
    let door = door().build().unwrap().start(Closed);
    let answers = [Push, Pull, Turn, Turn].map(|event| door.ask(event).unwrap().unwrap());
    assert_eq!(answers, [Open, Closed, Locked, Closed]);
    assert_eq!(door.state(), Ok(Closed));
}

#[watched]
fn an_unexpected_event_is_an_error_and_changes_nothing() {
    let door = door().build().unwrap().start(Locked);
    let error = door.ask(Push).unwrap().unwrap_err();
    assert_eq!(
        error,
        EventError::Unexpected {
            state: Locked,
            event: Push
        }
    );
    assert_eq!(
        error.to_string(),
        "Push is not expected in the state Locked"
    );
    assert_eq!(door.state(), Ok(Locked));
}

#[watched]
fn a_machine_may_stay_on_unexpected_events() {
    let notes = Notes::default();
    let door = door()
        .leaving(Locked, noting(&notes, "leaving"))
        .stay_on_unexpected()
        .build()
        .unwrap()
        .start(Locked);
    assert_eq!(door.ask(Push).unwrap(), Ok(Locked));
    assert!(notes.lock().unwrap().is_empty());
}

#[watched]
fn hooks_are_called_in_order() {
    let notes = Notes::default();
    let note = noting(&notes, "before");
    let asked = actor::function(move |change| -> Result<(), String> {
        note(&change);
        Ok(())
    });
    let note = noting(&notes, "after");
    let told = actor::consumer(move |change| note(&change));
    let mut machine = door()
        .entering(Open, noting(&notes, "entering"))
        .entering(Locked, noting(&notes, "never"))
        .leaving(Closed, noting(&notes, "leaving"))
        .before(asked)
        .after(&told)
        .build()
        .unwrap()
        .machine(Closed);
    assert_eq!(machine.on_event(Push), Ok(Open));
    told.close();
    told.join();
    let expected = ["before", "leaving", "entering", "after"];
    assert_eq!(
        *notes.lock().unwrap(),
        expected.map(|what| format!("{what} Closed Push Open"))
    );
}

#[watched]
fn a_refusal_keeps_the_state_and_calls_no_hook() {
    let notes = Notes::default();
    let asked = actor::function(|change: StateChange<State, Event>| match change.to {
        Locked => Err("the key is lost"),
        _ => Ok(()),
    });
    let door = door()
        .leaving(Closed, noting(&notes, "leaving"))
        .before(asked.clone())
        .build()
        .unwrap()
        .start(Closed);
    let Err(EventError::Refused { state, event, why }) = door.ask(Turn).unwrap() else {
        panic!("it is refused")
    };
    assert_eq!((state, event), (Closed, Turn));
    assert_eq!(why.to_string(), "the key is lost");
    assert!(notes.lock().unwrap().is_empty());
    assert_eq!(door.ask(Push).unwrap(), Ok(Open));
    // One that has ended refuses everything.
    asked.stop();
    asked.join();
    assert!(door.ask(Pull).unwrap().is_err());
    assert_eq!(door.state(), Ok(Open));
}

#[watched]
fn a_guard_that_asks_the_machine_is_a_deadlock_and_refuses() {
    let (give, given) = mpsc::channel::<actor::Ref<Machine<State, Event>>>();
    let asked = actor::function(move |_: StateChange<State, Event>| {
        let door = given.recv().unwrap();
        door.state().map(drop)
    });
    let door = door().before(asked).build().unwrap().start(Closed);
    give.send(door.clone()).unwrap();
    let Err(EventError::Refused { why, .. }) = door.ask(Push).unwrap() else {
        panic!("it is refused")
    };
    assert!(why.to_string().contains("deadlock"), "{why}");
}

#[watched]
fn a_machine_can_jump_without_hooks_but_not_to_nowhere() {
    let notes = Notes::default();
    let rules = door()
        .states([Open, Closed, Locked])
        .entering(Locked, noting(&notes, "entering"))
        .build()
        .unwrap();
    let door = rules.start(Open);
    assert_eq!(door.jump(Locked), Ok(Open));
    assert_eq!(door.state(), Ok(Locked));
    assert!(notes.lock().unwrap().is_empty());
    let two = Machine::template().on(1, '+', 2).build().unwrap().start(1);
    let nowhere = two.clone();
    assert!(pirn::thread::spawn(move || nowhere.jump(3)).join().is_err());
    assert_eq!(two.ask('+').unwrap(), Ok(2), "the machine goes on");
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
    rules.start(3);
}

#[watched]
fn machines_of_one_template_are_independent() {
    let rules = door().build().unwrap();
    let builder = Builder::new().name("front door");
    let (front, back) = (rules.start_by(&builder, Closed), rules.start(Closed));
    assert_eq!(&*front.name(), "front door");
    assert_eq!(front.ask(Push).unwrap(), Ok(Open));
    assert_eq!(back.state(), Ok(Closed));
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
    let door = rules.start(Closed);
    assert!(matches!(door.ask(Push), Err(AskError::Failed(_))));
    assert!(matches!(door.join(), Exit::Failed(_)));
}
