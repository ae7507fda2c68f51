//! How trees start and stop, and what is found in them.

use super::{HOUR, Log, Sleep, get, keep_busy, part, stop, three, three_with, told};
use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::error::LookupError;
use pirn_actor::process::{Inbox, Process};
use pirn_actor::supervisor::{ChildState, StartError, Supervisor};
use pirn_actor::{self as actor, AskError, Exit, Ref};
use std::sync::mpsc;
use std::time::Duration;

#[watched]
fn children_start_in_order_and_end_in_reverse_order() {
    for supervisor in [
        Supervisor::one_for_one(),
        Supervisor::one_for_all(),
        Supervisor::rest_for_one(),
    ] {
        let (app, _, log) = three(supervisor);
        stop(&app);
        assert_eq!(log.take(), "-c -b -a");
    }
}

#[watched]
fn a_child_begins_when_the_one_before_is_ready() {
    let (gate, log) = (Gate::new(), Log::default());
    let (blocked, mut first, mut second) = (gate.clone(), part("a", &log), part("b", &log));
    let begins = log.clone();
    let supervisor = Supervisor::one_for_one()
        .child("a", move || {
            blocked.wait();
            first()
        })
        .child("b", move || {
            begins.note("b begins");
            second()
        });
    let starting = thread::spawn(move || supervisor.start().unwrap());
    until(|| {
        actor::snapshot::take()
            .iter()
            .any(|actor| actor.kind == "Part")
    });
    assert_eq!(log.take(), "");
    gate.open();
    let app = starting.join().unwrap();
    assert_eq!(log.take(), "+a b begins +b");
    stop(&app);
}

#[watched]
fn a_child_that_does_not_start_ends_those_before_it_and_is_the_error() {
    let log = Log::default();
    let (tries, fails) = (log.clone(), log.clone());
    let supervisor = Supervisor::one_for_all()
        .child("a", part("a", &log))
        .child("b", part("b", &log))
        .try_child("c", move || -> Result<(), &str> {
            fails.note("c");
            Err("no disk")
        })
        .child("d", move || tries.note("d"));
    let Err(StartError::Failed { child, failure, .. }) = supervisor.start() else {
        panic!("c does not start")
    };
    assert_eq!((&*child, &*failure.to_string()), ("c", "no disk"));
    // It is tried once, d is not, and all is over.
    assert_eq!(log.take(), "+a +b c -b -a");
}

#[watched]
fn a_child_that_ends_while_it_starts_has_not_started() {
    let supervisor = Supervisor::one_for_one().process("none", |_: &mut Inbox<()>| {});
    // A process is ready when it begins: whether it has ended since is another matter.
    drop(supervisor.restarts(0, HOUR).start());
    let panics = Supervisor::one_for_one()
        .child("a", || -> u32 {
            std::panic::resume_unwind(Box::new("none"))
        })
        .temporary();
    assert!(matches!(panics.start(), Err(StartError::Failed { .. })));
}

#[watched]
fn names_are_of_one_child_each() {
    let twice = Supervisor::one_for_one().child("a", || 1).child("a", || 2);
    let error = twice.start().unwrap_err();
    assert_eq!(error.to_string(), "two children have the name a");
    let twice = Supervisor::one_for_one().child("a", || 1).child("a", || 2);
    let outer = Supervisor::one_for_one().supervisor("inner", twice);
    let error = outer.start().unwrap_err();
    assert_eq!(error.to_string(), "two children have the name inner/a");
}

#[watched]
fn a_child_is_found_by_its_name_and_type() {
    let app = Supervisor::one_for_one()
        .child("seven", || 7_u32)
        .start()
        .unwrap();
    let seven: Ref<u32> = app.get("seven").unwrap();
    assert_eq!(seven.run(|seven| *seven), Ok(7));
    assert_eq!(&*seven.name(), "seven");
    let unknown = app.get::<Ref<u32>>("eight").unwrap_err();
    assert_eq!(unknown.to_string(), "no actor has the name eight");
    let other = app.get::<Ref<i64>>("seven").unwrap_err();
    assert!(matches!(other, LookupError::WrongType { kind: "u32", .. }));
    assert!(app.get::<Process<u32>>("seven").is_err());
}

#[watched]
fn a_child_is_open_though_nobody_else_refers_to_it() {
    let (app, _, log) = three(Supervisor::one_for_one());
    drop(get(&app, "a"));
    assert_eq!(get(&app, "a").ask(super::Count), Ok(1));
    assert_eq!(log.take(), "");
}

#[watched]
fn a_tree_is_stopped_when_its_handle_is_dropped() {
    let (app, _, log) = three(Supervisor::one_for_one());
    let (monitor, a) = (app.monitor(), get(&app, "a"));
    drop(app);
    assert_eq!(monitor.recv().unwrap(), Exit::Stopped);
    assert_eq!(a.exit(), Some(Exit::Stopped));
    assert_eq!(log.take(), "-c -b -a");
}

#[watched]
fn all_who_watch_a_tree_hear_of_its_end() {
    let (app, _, _) = three(Supervisor::one_for_one());
    let (tell, told) = mpsc::channel();
    app.on_exit(move |exit| tell.send(exit.clone()).unwrap());
    let (begun, begins) = mpsc::channel();
    let watches = actor::process::spawn(move |inbox: &mut Inbox<Exit>| {
        inbox.watch(&app, |exit| exit);
        begun.send(app).unwrap();
        inbox.recv()
    });
    let app = begins.recv().unwrap();
    assert_eq!(app.exit(), None);
    assert_eq!(app.join_timeout(Duration::from_millis(1)), None);
    app.stop();
    assert_eq!(watches.into_result().unwrap(), Ok(Exit::Stopped));
    assert_eq!(told.recv().unwrap(), Exit::Stopped);
    assert_eq!(app.exit(), Some(Exit::Stopped));
}

#[watched]
fn a_child_that_does_not_stop_in_time_is_killed() {
    let grace = Duration::from_millis(20);
    let (app, _, _) = three_with(Supervisor::one_for_one(), grace);
    let begun = Gate::new();
    let sleeps = get(&app, "b").ask_later(Sleep(begun.clone())).unwrap();
    let later = get(&app, "b").ask_later(super::Count).unwrap();
    begun.wait();
    stop(&app);
    assert_eq!(sleeps.recv(), Ok(true), "it was interrupted");
    assert_eq!(later.recv(), Err(AskError::Gone));
    assert_eq!(get(&app, "a").exit(), Some(Exit::Stopped));
    assert_eq!(get(&app, "b").join(), Exit::Killed);
}

#[watched]
fn a_child_that_does_not_hear_the_kill_keeps_no_tree_from_its_end() {
    let grace = Duration::from_millis(5);
    let (app, events, log) = three_with(Supervisor::one_for_one(), grace);
    let gate = keep_busy(&get(&app, "b"));
    stop(&app);
    assert_eq!(events.next(), "b stuck");
    assert_eq!(log.take(), "-c -a");
    assert_eq!(app.children()[1].state, ChildState::Stuck);
    gate.open();
    assert_eq!(get(&app, "b").join(), Exit::Killed);
    assert_eq!(log.take(), "-b");
}

#[watched]
fn a_handler_may_stop_its_own_tree() {
    let (app, _, log) = three(Supervisor::one_for_all());
    let b = get(&app, "b");
    let app = std::sync::Arc::new(app);
    let own = std::sync::Arc::clone(&app);
    b.run_detached(move |_| own.stop()).unwrap();
    assert_eq!(app.join(), Exit::Stopped);
    assert_eq!(log.take(), "-c -b -a");
}

#[watched]
fn people_see_the_children() {
    let log = Log::default();
    let inner = Supervisor::one_for_one().child("b", part("b", &log));
    let (outer, events) = told(Supervisor::one_for_one());
    let app = outer
        .name("app")
        .child("a", part("a", &log))
        .transient()
        .supervisor("inner", inner)
        .process("p", |inbox: &mut Inbox<()>| {
            let _ = inbox.recv();
        })
        .start()
        .unwrap();
    drop(get(&app, "inner/b").ask(super::Fail));
    events.await_restarts(&["inner/b"]);
    get(&app, "a").close();
    assert_eq!(
        events.0.recv().map(|event| format!("{event:?}")),
        Ok(r#"Ended { child: "a", exit: Closed }"#.to_string())
    );
    let children = app.children();
    let seen: Vec<_> = children
        .iter()
        .chain(&children[1].children)
        .map(|child| (&*child.name, child.kind, child.state, child.restarts))
        .collect();
    assert_eq!(
        seen,
        [
            ("a", "Part", ChildState::Ended, 0),
            ("inner", "supervisor", ChildState::Running, 0),
            ("p", "process", ChildState::Running, 0),
            ("b", "Part", ChildState::Running, 1),
        ]
    );
    assert_eq!(&*app.name(), "app");
    assert!(format!("{app:?}").contains("inner"));
}

#[watched]
fn a_supervisor_without_children_runs() {
    let app = Supervisor::one_for_all().start().unwrap();
    assert_eq!(app.exit(), None);
    stop(&app);
}

#[watched]
fn supervisors_are_in_the_snapshot_as_long_as_they_are_there() {
    let inner = Supervisor::one_for_one().child("leaf-of-inner", Vec::<u32>::new);
    let app = Supervisor::one_for_one()
        .name("outer-seen")
        .supervisor("inner-seen", inner)
        .start()
        .unwrap();
    let seen = || {
        let all = actor::snapshot::take().into_iter();
        let own = all.filter(|actor| actor.name.ends_with("er-seen"));
        own.map(|actor| format!("{} {}", actor.kind, actor.name))
            .collect::<Vec<_>>()
    };
    assert_eq!(seen(), ["supervisor inner-seen", "supervisor outer-seen"]);
    stop(&app);
    assert_eq!(seen(), [""; 0]);
}
