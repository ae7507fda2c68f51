//! Children that end by themselves, or are ended by others.

use super::{Count, Fail, HOUR, Log, fail, get, part, stop, three, told};
use crate::common::{Gate, until, watched};
use pirn_actor::supervisor::{ChildState, Supervisor};
use pirn_actor::{Actor, AskError, Builder, Exit, Overflow, Ref};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

type End = fn(&(dyn Actor + 'static));

const ENDS: [(End, Exit); 3] = [
    (<dyn Actor>::close, Exit::Closed),
    (<dyn Actor>::stop, Exit::Stopped),
    (<dyn Actor>::kill, Exit::Killed),
];

#[watched]
fn a_permanent_child_that_is_ended_is_replaced() {
    for (end, exit) in ENDS {
        let (app, events, log) = three(Supervisor::one_for_one());
        let before = get(&app, "b");
        end(&*before);
        assert_eq!(events.next(), format!("b failed: it has ended: {exit}"));
        assert_eq!(events.next(), "b restarted");
        assert_eq!(log.take(), "-b +b");
        // The ended actor stays ended; another actor has its name.
        assert_eq!(before.ask(Count), Err(AskError::Gone));
        assert!(before != get(&app, "b"));
        assert_eq!(get(&app, "b").ask(Count), Ok(1));
        assert_eq!(&*get(&app, "b").name(), "b");
        stop(&app);
    }
}

#[watched]
fn the_strategy_applies_to_ends_as_well() {
    let (app, events, log) = three(Supervisor::rest_for_one());
    let c = get(&app, "c");
    get(&app, "b").stop();
    events.await_restarts(&["b", "c"]);
    assert_eq!(log.take(), "-b -c +b +c");
    assert_eq!(c, get(&app, "c"), "it was restarted, not replaced");
}

#[watched]
fn a_transient_child_is_over_when_it_is_closed_or_stopped_only() {
    for (end, exit) in ENDS {
        let (supervisor, events) = told(Supervisor::one_for_all());
        let recipe = part("a", &Log::default());
        let app = supervisor.child("a", recipe).transient().start().unwrap();
        let a = get(&app, "a");
        assert!(a.ask(Fail).is_err());
        events.await_restarts(&["a"]);
        end(&*a);
        if exit == Exit::Killed {
            events.await_restarts(&["a"]);
        } else {
            assert_eq!(events.next(), format!("a ended: {exit}"));
            assert_eq!(app.children()[0].state, ChildState::Ended);
        }
        stop(&app);
    }
}

#[watched]
fn the_failure_of_a_temporary_child_is_its_end_and_of_no_other() {
    let (supervisor, events) = told(Supervisor::one_for_all());
    let app = supervisor
        .child("a", || 0)
        .child("b", || 0)
        .temporary()
        .start()
        .unwrap();
    let (a, b): (Ref<i32>, Ref<i32>) = (app.get("a").unwrap(), app.get("b").unwrap());
    a.run(|n| *n = 5).unwrap();
    assert!(b.run(|_| fail("b")).is_err());
    assert_eq!(events.next(), "b ended: failed: panicked: b fails");
    assert!(matches!(b.exit(), Some(Exit::Failed(_))));
    assert_eq!(a.run(|n| *n), Ok(5));
    stop(&app);
}

#[watched]
fn a_temporary_child_ends_with_the_others_and_does_not_begin_anew() {
    let log = Log::default();
    let (supervisor, events) = told(Supervisor::one_for_all());
    let app = supervisor
        .child("a", part("a", &log))
        .child("b", part("b", &log))
        .temporary()
        .child("c", part("c", &log))
        .start()
        .unwrap();
    log.take();
    assert!(get(&app, "a").ask(Fail).is_err());
    events.await_restarts(&["a", "c"]);
    assert_eq!(log.take(), "-a -c -b +a +c");
    assert_eq!(get(&app, "b").exit(), Some(Exit::Stopped));
    assert_eq!(app.children()[1].state, ChildState::Ended);
}

#[watched]
fn a_child_that_is_ended_while_it_waits_for_its_restart_is_replaced() {
    for (end, exit) in &ENDS[1..] {
        let gate = Gate::new();
        let (supervisor, events) = told(Supervisor::one_for_one());
        let made = AtomicU32::new(0);
        let blocked = gate.clone();
        let log = Log::default();
        let mut recipe = part("a", &log);
        let app = supervisor
            .child("a", move || {
                if made.fetch_add(1, Ordering::SeqCst) == 1 {
                    blocked.wait();
                }
                recipe()
            })
            .start()
            .unwrap();
        let a = get(&app, "a");
        assert!(a.ask(Fail).is_err());
        let waits = a.ask_later(Count).unwrap();
        until(|| app.children()[0].state == ChildState::Restarting);
        end(&*a);
        gate.open();
        assert_eq!(a.join(), *exit);
        assert!(matches!(waits.recv(), Err(AskError::Gone)));
        events.await_restarts(&["a"]);
        until(|| get(&app, "a") != a);
        assert_eq!(get(&app, "a").ask(Count), Ok(1));
    }
}

#[watched]
fn a_held_child_that_is_killed_ends_at_once_and_is_replaced_in_time() {
    let (app, events, _) = three(Supervisor::one_for_one().backoff(HOUR..HOUR));
    let a = get(&app, "a");
    assert!(a.ask(Fail).is_err());
    assert_eq!(events.next(), "a failed: panicked: a fails");
    let waits = a.ask_later(Count).unwrap();
    a.kill();
    assert_eq!(waits.recv(), Err(AskError::Gone));
    assert_eq!(a.join(), Exit::Killed);
    assert_eq!(app.children()[0].state, ChildState::Restarting);
    stop(&app);
}

#[watched]
fn a_held_child_that_is_closed_handles_what_it_has_when_it_is_restarted() {
    let ms = Duration::from_millis(5);
    let (app, _, _) = three(Supervisor::one_for_one().backoff(ms..ms));
    let a = get(&app, "a");
    assert!(a.ask(Fail).is_err());
    let waits = a.ask_later(Count).unwrap();
    a.close();
    assert_eq!(waits.recv(), Ok(1));
    assert_eq!(a.join(), Exit::Closed);
    until(|| get(&app, "a") != a);
    assert_eq!(get(&app, "a").ask(Count), Ok(1));
}

#[watched]
fn a_child_that_overflows_is_replaced_and_one_that_is_held_does_not_overflow() {
    let small = Builder::new().capacity(1).overflow(Overflow::Stop);
    let (supervisor, events) = told(Supervisor::one_for_one().restarts(9, HOUR));
    let ms = Duration::from_millis(20);
    let app = supervisor
        .backoff(ms..ms)
        .child("a", || 0)
        .builder(small)
        .start()
        .unwrap();
    let a: Ref<i32> = app.get("a").unwrap();
    let (begun, gate) = (Gate::new(), Gate::new());
    let (begins, blocked) = (begun.clone(), gate.clone());
    let waits = move |_: &mut i32| {
        begins.open();
        blocked.wait();
    };
    a.run_detached(waits).unwrap();
    begun.wait();
    a.run_detached(|_| ()).unwrap();
    assert!(!a.run_detached(|_| ()).unwrap_err().is_full());
    gate.open();
    assert_eq!(events.next(), "a failed: its mailbox was full");
    events.await_restarts(&["a"]);
    // Held, it is full, and not ended for that.
    let a: Ref<i32> = app.get("a").unwrap();
    assert!(a.run(|_| fail("a")).is_err());
    assert_eq!(events.next(), "a failed: panicked: a fails");
    let mut sent = 0;
    let full = loop {
        match a.run_detached(|n| *n += 1) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
    };
    assert!(full.is_full(), "{full:?}");
    events.await_restarts(&["a"]);
    until(|| a.is_empty());
    assert_eq!(a.run(|n| *n), Ok(sent));
}
