//! Failures: who is restarted, when, and how often.

use super::{Count, Fail, HOUR, Log, Sleep, fail, get, part, stop, three, told};
use crate::common::{Gate, until, watched};
use pirn_actor::supervisor::{ChildState, Supervisor, Tree};
use pirn_actor::{AskError, Builder, Exit, Ref};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// The answers to `Count` of a, b and c: 1 of one that was restarted.
fn counts(app: &Tree) -> [u32; 3] {
    ["a", "b", "c"].map(|name| get(app, name).ask(Count).unwrap())
}

#[watched]
fn one_for_one_restarts_the_child_that_failed() {
    let (app, events, log) = three(Supervisor::one_for_one());
    assert_eq!(counts(&app), [1, 1, 1]);
    let Err(AskError::Failed(failure)) = get(&app, "b").ask(Fail) else {
        panic!("it fails")
    };
    assert_eq!(failure.to_string(), "panicked: b fails");
    assert_eq!(events.next(), "b failed: panicked: b fails");
    assert_eq!(events.next(), "b restarted");
    assert_eq!(log.take(), "-b +b");
    assert_eq!(counts(&app), [2, 1, 2]);
    stop(&app);
}

#[watched]
fn one_for_all_restarts_all_in_reverse_and_in_order() {
    let (app, events, log) = three(Supervisor::one_for_all());
    assert_eq!(counts(&app), [1, 1, 1]);
    assert!(get(&app, "b").ask(Fail).is_err());
    events.await_restarts(&["a", "b", "c"]);
    assert_eq!(log.take(), "-b -c -a +a +b +c");
    assert_eq!(counts(&app), [1, 1, 1]);
    stop(&app);
}

#[watched]
fn rest_for_one_restarts_those_after_it() {
    let (app, events, log) = three(Supervisor::rest_for_one());
    assert_eq!(counts(&app), [1, 1, 1]);
    assert!(get(&app, "b").ask(Fail).is_err());
    events.await_restarts(&["b", "c"]);
    assert_eq!(log.take(), "-b -c +b +c");
    assert_eq!(counts(&app), [2, 1, 1]);
    assert!(get(&app, "a").ask(Fail).is_err());
    events.await_restarts(&["a", "b", "c"]);
    assert_eq!(log.take(), "-a -c -b +a +b +c");
    stop(&app);
}

#[watched]
fn an_idle_child_that_is_restarted_with_others_has_no_old_state() {
    let (app, events, _) = three(Supervisor::one_for_all());
    let c = get(&app, "c");
    assert_eq!(c.ask(Count), Ok(1));
    for _ in 0..3 {
        until(|| c.is_empty());
        assert!(get(&app, "a").ask(Fail).is_err());
        events.await_restarts(&["a", "b", "c"]);
        assert_eq!(c.ask(Count), Ok(1));
    }
}

#[watched]
fn a_child_that_is_restarted_with_others_is_interrupted_and_keeps_its_messages() {
    let (app, events, log) = three(Supervisor::one_for_all());
    let (begun, c) = (Gate::new(), get(&app, "c"));
    let sleeps = c.ask_later(Sleep(begun.clone())).unwrap();
    let later: Vec<_> = (0..3).map(|_| c.ask_later(Count).unwrap()).collect();
    begun.wait();
    assert!(get(&app, "a").ask(Fail).is_err());
    assert_eq!(sleeps.recv(), Ok(true), "it was interrupted");
    let later: Vec<_> = later.into_iter().map(|reply| reply.recv()).collect();
    assert_eq!(later, [Ok(1), Ok(2), Ok(3)], "a new state has handled them");
    events.await_restarts(&["a", "b", "c"]);
    assert_eq!(log.take(), "-a -c -b +a +b +c");
}

#[watched]
fn messages_keep_their_order_through_restarts() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let app = Supervisor::one_for_one()
        .restarts(usize::MAX, HOUR)
        .child("list", || 0)
        .start()
        .unwrap();
    let list: Ref<i32> = app.get("list").unwrap();
    for n in 0..200 {
        let seen = Arc::clone(&seen);
        let note = move |_: &mut i32| {
            seen.lock().unwrap().push(n);
            if n % 7 == 0 {
                fail("list");
            }
        };
        list.run_detached(note).unwrap();
    }
    list.run(|_| ()).unwrap();
    assert!(seen.lock().unwrap().iter().copied().eq(0..200));
}

#[watched]
fn a_recipe_that_fails_at_a_restart_counts_and_is_tried_again() {
    let made = Arc::new(AtomicU32::new(0));
    let makes = Arc::clone(&made);
    let (supervisor, events) = told(Supervisor::one_for_one().restarts(3, HOUR));
    let app = supervisor
        .try_child("db", move || match makes.fetch_add(1, Ordering::SeqCst) {
            1 | 2 => Err("no network"),
            n => Ok(n),
        })
        .start()
        .unwrap();
    let db: Ref<u32> = app.get("db").unwrap();
    assert!(db.run(|_| fail("db")).is_err());
    assert_eq!(db.run(|made| *made), Ok(3), "who asks waits for it");
    let told: Vec<_> = (0..4).map(|_| events.next()).collect();
    assert_eq!(
        told,
        [
            "db failed: panicked: db fails",
            "db failed: no network",
            "db failed: no network",
            "db restarted"
        ]
    );
    // That was three restarts.
    assert!(db.run(|_| fail("db")).is_err());
    assert!(matches!(app.join(), Exit::Failed(_)));
}

#[watched]
fn a_supervisor_that_restarts_too_often_ends_its_children_and_has_failed() {
    let (app, _, log) = three(Supervisor::one_for_one().restarts(2, HOUR));
    for name in ["a", "b"] {
        assert!(get(&app, name).ask(Fail).is_err());
        assert_eq!(get(&app, name).ask(Count), Ok(1));
    }
    // They count together.
    assert_eq!(log.take(), "-a +a -b +b");
    assert!(get(&app, "c").ask(Fail).is_err());
    let Exit::Failed(failure) = app.join() else {
        panic!("it has failed")
    };
    let why = "more than 2 restarts within 3600s: c: panicked: c fails";
    assert_eq!(failure.to_string(), why);
    assert_eq!(log.take(), "-c -b -a");
    assert_eq!(get(&app, "c").ask(Count), Err(AskError::Gone));
}

#[watched]
fn a_supervisor_may_be_told_to_restart_nothing() {
    let (app, _, log) = three(Supervisor::one_for_all().restarts(0, HOUR));
    assert!(get(&app, "a").ask(Fail).is_err());
    assert!(matches!(app.join(), Exit::Failed(_)));
    assert_eq!(log.take(), "-a -c -b");
}

#[watched]
fn restarts_that_are_long_ago_do_not_count() {
    let period = Duration::from_millis(2);
    let (app, events, _) = three(Supervisor::one_for_one().restarts(1, period));
    for _ in 0..3 {
        assert!(get(&app, "a").ask(Fail).is_err());
        events.await_restarts(&["a"]);
        let restarted = Instant::now();
        until(|| restarted.elapsed() > period);
    }
    stop(&app);
}

#[watched]
fn there_is_a_time_between_failure_and_restart_that_doubles() {
    let ms = Duration::from_millis;
    let (app, _, _) = three(
        Supervisor::one_for_one()
            .restarts(9, HOUR)
            .backoff(ms(4)..ms(9)),
    );
    for least in [ms(4), ms(8), ms(9), ms(9)] {
        let failed = Instant::now();
        assert!(get(&app, "a").ask(Fail).is_err());
        assert_eq!(get(&app, "a").ask(Count), Ok(1));
        assert!(failed.elapsed() >= least);
    }
}

#[watched]
fn a_child_that_waits_for_its_restart_keeps_no_other_from_its_own() {
    let supervisor = Supervisor::one_for_one().restarts(9, HOUR);
    let gate = Gate::new();
    let blocked = gate.clone();
    let made = Arc::new(AtomicU32::new(0));
    let (supervisor, events) = told(supervisor);
    let app = supervisor
        .child("slow", move || {
            if made.fetch_add(1, Ordering::SeqCst) > 0 {
                blocked.wait();
            }
        })
        .child("fast", || ())
        .start()
        .unwrap();
    let (slow, fast) = (
        app.get::<Ref<()>>("slow").unwrap(),
        app.get::<Ref<()>>("fast").unwrap(),
    );
    assert!(slow.run(|()| fail("slow")).is_err());
    until(|| app.children()[0].state == ChildState::Restarting);
    assert!(fast.run(|()| fail("fast")).is_err());
    events.await_restarts(&["fast"]);
    gate.open();
    events.await_restarts(&["slow"]);
}

#[watched]
fn a_tree_can_be_stopped_while_a_child_waits_for_its_restart() {
    let (app, events, log) = three(Supervisor::one_for_all().backoff(HOUR..HOUR));
    let asks = get(&app, "a");
    assert!(asks.ask(Fail).is_err());
    assert_eq!(events.next(), "a failed: panicked: a fails");
    let waits = asks.ask_later(Count).unwrap();
    stop(&app);
    assert_eq!(waits.recv(), Err(AskError::Gone));
    assert_eq!(log.take(), "-a -c -b");
}

#[watched]
fn siblings_that_fail_at_once_are_one_restart() {
    for _ in 0..20 {
        let supervisor = Supervisor::one_for_all().restarts(1, HOUR);
        let (app, events, _) = three(supervisor);
        // Both are at a message, and go on to fail together.
        let gate = Gate::new();
        for name in ["a", "c"] {
            let (begun, gate) = (Gate::new(), gate.clone());
            let begins = begun.clone();
            let both = move |part: &mut super::Part| {
                begins.open();
                gate.wait();
                fail(part.name);
            };
            get(&app, name).run_detached(both).unwrap();
            begun.wait();
        }
        gate.open();
        events.await_restarts(&["a", "b", "c"]);
        assert_eq!(counts(&app), [1, 1, 1]);
        assert_eq!(app.exit(), None);
        stop(&app);
    }
}

#[watched]
fn a_recipe_may_ask_a_child_that_fails_meanwhile() {
    // b's recipe asks a; a fails under it, and is restarted though b is not ready.
    for supervisor in [Supervisor::one_for_one(), Supervisor::rest_for_one()] {
        let log = Log::default();
        let known: Arc<Mutex<Option<Ref<super::Part>>>> = Arc::default();
        let (knows, tried) = (Arc::clone(&known), AtomicU32::new(0));
        let (supervisor, events) = told(supervisor);
        let app = supervisor
            .child("a", part("a", &log))
            .child("b", move || {
                let a = knows.lock().unwrap().clone();
                let Some(a) = a else { return 0 };
                if tried.fetch_add(1, Ordering::SeqCst) == 0 {
                    a.send(Fail).unwrap();
                }
                a.ask(Count).unwrap_or(7)
            })
            .start()
            .unwrap();
        *known.lock().unwrap() = Some(get(&app, "a"));
        let b: Ref<u32> = app.get("b").unwrap();
        assert!(b.run(|_| fail("b")).is_err());
        events.await_restarts(&["a"]);
        let answer = b.run(|answer| *answer);
        assert!(matches!(answer, Ok(1..=2)), "{answer:?}");
        known.lock().unwrap().take();
        stop(&app);
    }
}

#[watched]
fn the_restarts_of_the_builder_come_first() {
    let own = Builder::new().restarts(pirn_actor::Restarts::at_most(1).within(HOUR));
    let (supervisor, events) = told(Supervisor::one_for_one());
    let app = supervisor
        .child("a", || 0_u32)
        .builder(own)
        .start()
        .unwrap();
    let a: Ref<u32> = app.get("a").unwrap();
    assert!(a.run(|_| fail("first")).is_err());
    assert_eq!(a.run(|n| *n), Ok(0));
    assert!(a.run(|_| fail("second")).is_err());
    assert_eq!(events.next(), "a failed: panicked: second fails");
    assert_eq!(a.run(|n| *n), Ok(0));
}

#[watched]
fn a_function_that_is_told_may_panic() {
    let supervisor = Supervisor::one_for_one().on_event(|_| fail("told"));
    let app = supervisor.child("a", || 0_u32).start().unwrap();
    let a: Ref<u32> = app.get("a").unwrap();
    assert!(a.run(|_| fail("a")).is_err());
    assert_eq!(a.run(|n| *n), Ok(0));
    stop(&app);
}
