//! Children that look up those before them, and children that are found by what they are sent.

use super::{Count, Fail, Part, get, part, stop, told};
use crate::common::watched;
use pirn_actor::error::LookupError;
use pirn_actor::process::{Inbox, Process};
use pirn_actor::supervisor::Supervisor;
use pirn_actor::{Address, Ref};
use std::sync::mpsc::channel;

fn unknown<T>(found: Result<T, LookupError>) -> bool {
    matches!(found, Err(LookupError::Unknown { .. }))
}

#[watched]
fn a_recipe_finds_the_children_before_it_at_the_start_and_at_each_restart() {
    let (log, (tell, found)) = (super::Log::default(), channel());
    let (supervisor, events) = told(Supervisor::rest_for_one());
    let supervisor = supervisor.child("a", part("a", &log));
    let siblings = supervisor.siblings();
    assert!(
        unknown(siblings.get::<Ref<Part>>("a")),
        "it is not started yet"
    );
    let mut make = part("b", &log);
    let app = supervisor
        .child("b", move || {
            let before = siblings.get::<Ref<Part>>("a").unwrap();
            let own = siblings.get::<Ref<Part>>("b");
            let others = [own, siblings.get("c"), siblings.get("none")];
            tell.send((before.ask(Count), others.map(unknown))).unwrap();
            make()
        })
        .child("c", part("c", &log))
        .start()
        .unwrap();
    assert_eq!(found.recv(), Ok((Ok(1), [true; 3])));
    get(&app, "b").send(Fail).unwrap();
    events.await_restarts(&["b", "c"]);
    // Those after it are there by now, and are not found all the same.
    assert_eq!(found.recv(), Ok((Ok(2), [true; 3])));
    get(&app, "a").send(Fail).unwrap();
    events.await_restarts(&["a", "b", "c"]);
    assert_eq!(found.recv(), Ok((Ok(1), [true; 3])), "of the new state");
    stop(&app);
}

#[watched]
fn siblings_are_actors_processes_functions_and_children_of_supervisors() {
    let (log, (tell, found)) = (super::Log::default(), channel());
    let echo = |inbox: &mut Inbox<pirn_actor::reply::ReplyTo<u32>>| {
        while let Ok(reply) = inbox.recv() {
            reply.send(3);
        }
    };
    let inner = Supervisor::one_for_one().child("part", part("part", &log));
    let supervisor = Supervisor::one_for_one()
        .process("process", echo)
        .function("function", || |n: u32| n + 1)
        .supervisor("inner", inner);
    let siblings = supervisor.siblings();
    assert_eq!(format!("{siblings:?}"), "[]");
    let app = supervisor
        .process("last", move |inbox: &mut Inbox<()>| {
            let process: Process<_> = siblings.get("process").unwrap();
            let function: Address<u32, u32> = siblings.get("function").unwrap();
            let part: Ref<Part> = siblings.get("inner/part").unwrap();
            let names = format!("{siblings:?}");
            let answers = [process.ask(|reply| reply), function.ask(7), part.ask(Count)];
            tell.send((answers, names)).unwrap();
            let _ = inbox.recv();
        })
        .start()
        .unwrap();
    let names = r#"["process", "function", "inner"]"#.to_string();
    assert_eq!(found.recv(), Ok(([Ok(3), Ok(8), Ok(1)], names)));
    stop(&app);
}

#[watched]
fn a_function_is_found_by_the_types_of_its_messages_and_answers() {
    let inner = Supervisor::one_for_one().function("halves", || |n: u32| 100 / n);
    let (supervisor, events) = told(Supervisor::one_for_one());
    let app = supervisor
        .supervisor("inner", inner)
        .child("list", Vec::<u32>::new)
        .start()
        .unwrap();
    let halves: Address<u32, u32> = app.get("inner/halves").unwrap();
    assert_eq!(halves.ask(4), Ok(25));
    assert!(halves.ask(0).is_err());
    events.await_restarts(&["inner/halves"]);
    assert_eq!(halves.ask(5), Ok(20), "the address stays good");
    let errors = [
        app.get::<Address<u32, u64>>("inner/halves").unwrap_err(),
        app.get::<Address<u32, u32>>("list").unwrap_err(),
        app.get::<Address<u32, u32>>("inner").unwrap_err(),
        app.get::<Ref<Vec<u32>>>("inner/halves").unwrap_err(),
        app.get::<Address<u32, u32>>("none").unwrap_err(),
    ];
    let texts = errors.map(|error| error.to_string());
    assert_eq!(
        texts,
        [
            "inner/halves is of another type: function",
            "list is of another type: Vec<u32>",
            "inner is of another type: supervisor",
            "inner/halves is of another type: function",
            "no actor has the name none",
        ]
    );
    assert_eq!(app.children()[0].children[0].kind, "function");
    let _: Result<Process<()>, LookupError> = app.get("none");
    stop(&app);
}
