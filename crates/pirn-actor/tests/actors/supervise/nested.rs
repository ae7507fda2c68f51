//! Supervisors that are children.

use super::{Count, Fail, HOUR, Log, fail, get, part, stop, told};
use crate::common::{until, watched};
use pirn_actor::supervisor::{ChildState, StartError, Supervisor};
use pirn_actor::{AskError, Exit, Ref};

/// a, and under `inner` b and c.
fn nested(outer: Supervisor, inner: Supervisor, log: &Log) -> Supervisor {
    let inner = inner.child("b", part("b", log)).child("c", part("c", log));
    outer
        .child("a", part("a", log))
        .supervisor("inner", inner)
        .child("d", part("d", log))
}

#[watched]
fn a_tree_starts_in_order_and_ends_in_reverse_order_through_all_levels() {
    let log = Log::default();
    let app = nested(Supervisor::one_for_one(), Supervisor::one_for_one(), &log);
    let app = app.start().unwrap();
    assert_eq!(log.take(), "+a +b +c +d");
    stop(&app);
    assert_eq!(log.take(), "-d -c -b -a");
}

#[watched]
fn the_error_of_a_start_comes_through_all_levels() {
    let log = Log::default();
    let inner = Supervisor::one_for_one()
        .child("b", part("b", &log))
        .try_child("c", || Err::<(), _>("no disk"));
    let app = Supervisor::one_for_one()
        .child("a", part("a", &log))
        .supervisor("inner", inner);
    let Err(StartError::Failed { child, failure, .. }) = app.start() else {
        panic!("it does not start")
    };
    assert_eq!((&*child, &*failure.to_string()), ("inner", "c: no disk"));
    assert_eq!(log.take(), "+a +b -b -a");
}

#[watched]
fn a_failure_below_is_mended_below() {
    let log = Log::default();
    let (outer, events) = told(Supervisor::one_for_all());
    let app = nested(outer, Supervisor::one_for_one(), &log)
        .start()
        .unwrap();
    log.take();
    assert!(get(&app, "inner/b").ask(Fail).is_err());
    events.await_restarts(&["inner/b"]);
    assert_eq!(log.take(), "-b +b");
    stop(&app);
}

#[watched]
fn a_supervisor_that_fails_is_restarted_by_the_one_above_and_references_stay_good() {
    let log = Log::default();
    let (outer, events) = told(Supervisor::rest_for_one());
    let inner = Supervisor::one_for_one().restarts(1, HOUR);
    let app = nested(outer, inner, &log).start().unwrap();
    let (b, c) = (get(&app, "inner/b"), get(&app, "inner/c"));
    log.take();
    assert_eq!(c.ask(Count), Ok(1));
    assert!(b.ask(Fail).is_err());
    assert_eq!(b.ask(Count), Ok(1));
    assert_eq!(log.take(), "-b +b");
    let later = c.ask_later(Count).unwrap();
    assert_eq!(later.recv(), Ok(2));
    // Once more is too often for the inner one.
    assert!(b.ask(Fail).is_err());
    events.await_restarts(&["inner", "d"]);
    assert_eq!(log.take(), "-b -c -d +b +c +d");
    assert_eq!((b.ask(Count), c.ask(Count)), (Ok(1), Ok(1)));
    // Its restarts count from the beginning again.
    assert!(b.ask(Fail).is_err());
    assert_eq!(b.ask(Count), Ok(1));
    assert_eq!(app.exit(), None);
    stop(&app);
}

#[watched]
fn a_failure_that_nobody_mends_ends_the_tree() {
    let log = Log::default();
    let (outer, events) = told(Supervisor::one_for_one());
    let inner = Supervisor::one_for_one();
    let app = nested(outer.restarts(1, HOUR), inner.restarts(0, HOUR), &log);
    let app = app.start().unwrap();
    let b = get(&app, "inner/b");
    assert!(b.ask(Fail).is_err());
    events.await_restarts(&["inner"]);
    assert_eq!(b.ask(Count), Ok(1), "that was the outer one's restart");
    get(&app, "inner/c").ask(Count).unwrap(); // restarted after b
    log.take();
    assert!(b.ask(Fail).is_err());
    let Exit::Failed(failure) = app.join() else {
        panic!("it has failed")
    };
    let why = "more than 1 restarts within 3600s: inner: \
               more than 0 restarts within 3600s: b: panicked: b fails";
    assert_eq!(failure.to_string(), why);
    assert_eq!(log.take(), "-b -c -d -a");
    assert_eq!(b.ask(Count), Err(AskError::Gone));
}

#[watched]
fn a_branch_that_is_restarted_with_others_pauses_in_reverse_order() {
    let log = Log::default();
    let (outer, events) = told(Supervisor::one_for_all());
    let app = nested(outer, Supervisor::one_for_one(), &log)
        .start()
        .unwrap();
    let b = get(&app, "inner/b");
    assert_eq!(b.ask(Count), Ok(1));
    log.take();
    assert!(get(&app, "d").ask(Fail).is_err());
    events.await_restarts(&["a", "inner", "d"]);
    assert_eq!(log.take(), "-d -c -b -a +a +b +c +d");
    assert_eq!(b.ask(Count), Ok(1), "the same reference, another state");
    stop(&app);
}

#[watched]
fn a_branch_that_is_restarted_begins_children_anew_that_had_ended() {
    let log = Log::default();
    let (outer, events) = told(Supervisor::one_for_all());
    let inner = Supervisor::one_for_one()
        .child("b", part("b", &log))
        .transient();
    let app = outer
        .child("a", part("a", &log))
        .supervisor("inner", inner)
        .start()
        .unwrap();
    let b = get(&app, "inner/b");
    b.stop();
    b.join();
    assert_eq!(events.next(), "inner/b ended: stopped");
    assert!(get(&app, "a").ask(Fail).is_err());
    events.await_restarts(&["a", "inner/b", "inner"]);
    assert_eq!(get(&app, "inner/b").ask(Count), Ok(1));
}

#[watched]
fn a_temporary_branch_that_fails_has_ended() {
    let log = Log::default();
    let (outer, events) = told(Supervisor::one_for_all());
    let inner = Supervisor::one_for_one().restarts(0, HOUR);
    let app = outer
        .child("a", || 7)
        .supervisor("inner", inner.child("b", part("b", &log)))
        .temporary()
        .start()
        .unwrap();
    assert!(get(&app, "inner/b").ask(Fail).is_err());
    assert_eq!(events.next(), "inner/b failed: panicked: b fails");
    assert!(
        events
            .next()
            .starts_with("inner ended: failed: more than 0")
    );
    assert_eq!(log.take(), "+b -b");
    assert_eq!(app.get::<Ref<i32>>("a").unwrap().run(|n| *n), Ok(7));
}

#[watched]
fn a_temporary_branch_begins_anew_with_the_supervisor_above_it() {
    let log = Log::default();
    let (outer, events) = told(Supervisor::one_for_all());
    let leaf = Supervisor::one_for_one().child("b", part("b", &log));
    let middle = Supervisor::one_for_one()
        .supervisor("leaf", leaf)
        .temporary();
    let app = outer
        .child("a", || 0)
        .supervisor("middle", middle)
        .start()
        .unwrap();
    let before = get(&app, "middle/leaf/b");
    let a = app.get::<Ref<i32>>("a").unwrap();
    assert!(a.run(|_| fail("a")).is_err());
    events.await_restarts(&["a", "middle"]);
    assert_eq!(log.take(), "+b -b +b");
    assert_eq!(before.join(), Exit::Stopped);
    assert_eq!(get(&app, "middle/leaf/b").ask(Count), Ok(1));
    stop(&app);
    assert_eq!(log.take(), "-b");
}

#[watched]
fn ten_levels_start_fail_and_end() {
    let log = Log::default();
    let mut tree = Supervisor::one_for_one()
        .restarts(0, HOUR)
        .child("leaf", part("leaf", &log));
    let mut path = "leaf".to_string();
    for level in 0..10 {
        let most = usize::from(level == 9);
        tree = Supervisor::one_for_all()
            .restarts(most, HOUR)
            .supervisor("next", tree);
        path = format!("next/{path}");
    }
    let app = tree.start().unwrap();
    let leaf = get(&app, &path);
    assert!(leaf.ask(Fail).is_err());
    assert_eq!(leaf.ask(Count), Ok(1));
    until(|| app.children()[0].state == ChildState::Running);
    stop(&app);
    assert_eq!(log.take(), "+leaf -leaf +leaf -leaf");
}
