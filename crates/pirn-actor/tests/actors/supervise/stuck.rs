//! Children that do not hear.

use super::{Count, Fail, HOUR, Part, get, keep_busy, stop, three_with};
use crate::common::{Gate, until, watched};
use pirn_actor::supervisor::{ChildState, Supervisor};
use pirn_actor::{AskError, Exit};
use std::time::Duration;

const GRACE: Duration = Duration::from_millis(5);

#[watched]
fn a_child_that_does_not_pause_in_time_keeps_no_other_from_its_restart() {
    let (app, events, log) = three_with(Supervisor::one_for_all(), GRACE);
    let b = get(&app, "b");
    assert_eq!(b.ask(Count), Ok(1));
    let gate = keep_busy(&b);
    let later = b.ask_later(Count).unwrap();
    assert!(get(&app, "a").ask(Fail).is_err());
    assert_eq!(events.next(), "a failed: panicked: a fails");
    assert_eq!(events.next(), "b stuck");
    events.await_restarts(&["a", "c"]);
    // There is one state of b, with the thread that is at it.
    assert_eq!(log.take(), "-a -c +a +c");
    assert_eq!(app.children()[1].state, ChildState::Stuck);
    gate.open();
    events.await_restarts(&["b"]);
    assert_eq!(log.take(), "-b +b");
    assert_eq!(
        later.recv(),
        Ok(1),
        "its mailbox has waited for the new state"
    );
    stop(&app);
}

#[watched]
fn a_child_that_is_stuck_takes_part_in_later_restarts_when_it_has_heard() {
    let (app, events, log) = three_with(Supervisor::one_for_all().restarts(9, HOUR), GRACE);
    let b = get(&app, "b");
    let gate = keep_busy(&b);
    for _ in 0..2 {
        assert!(get(&app, "a").ask(Fail).is_err());
        events.await_restarts(&["a", "c"]);
    }
    assert_eq!(log.take(), "-a -c +a +c -a -c +a +c");
    gate.open();
    events.await_restarts(&["b"]);
    assert_eq!(b.ask(Count), Ok(1));
    assert!(get(&app, "a").ask(Fail).is_err());
    // On a busy machine it is late again; then it begins anew after the others.
    let mut restarted = Vec::new();
    while restarted.len() < 3 {
        restarted.extend(events.next().strip_suffix(" restarted").map(String::from));
    }
    assert!(restarted.contains(&"b".to_string()));
    assert_eq!(b.ask(Count), Ok(1));
}

#[watched]
fn a_child_that_is_stuck_and_then_fails_or_is_killed_begins_anew_all_the_same() {
    let (app, events, _) = three_with(Supervisor::one_for_all(), GRACE);
    let (begun, gate) = (Gate::new(), Gate::new());
    let (begins, blocked) = (begun.clone(), gate.clone());
    let fails = move |part: &mut Part| {
        begins.open();
        blocked.wait();
        super::fail(part.name);
    };
    get(&app, "b").run_detached(fails).unwrap();
    begun.wait();
    assert!(get(&app, "a").ask(Fail).is_err());
    events.await_restarts(&["a", "c"]);
    gate.open();
    events.await_restarts(&["b"]);
    assert_eq!(get(&app, "b").ask(Count), Ok(1));

    let before = get(&app, "b");
    let gate = keep_busy(&before);
    assert!(get(&app, "a").ask(Fail).is_err());
    events.await_restarts(&["a", "c"]);
    before.kill();
    gate.open();
    assert_eq!(before.join(), Exit::Killed);
    until(|| get(&app, "b") != before);
    assert_eq!(get(&app, "b").ask(Count), Ok(1));
    stop(&app);
}

#[watched]
fn a_tree_with_a_child_that_is_stuck_can_be_stopped() {
    let (app, events, log) = three_with(Supervisor::one_for_all(), GRACE);
    let gate = keep_busy(&get(&app, "b"));
    let later = get(&app, "b").ask_later(Count).unwrap();
    assert!(get(&app, "a").ask(Fail).is_err());
    events.await_restarts(&["a", "c"]);
    log.take();
    stop(&app);
    assert_eq!(log.take(), "-c -a");
    gate.open();
    assert_eq!(get(&app, "b").join(), Exit::Killed);
    assert_eq!(later.recv(), Err(AskError::Gone));
}

#[watched]
fn a_temporary_child_that_does_not_end_keeps_no_other_from_its_restart() {
    let log = super::Log::default();
    let (supervisor, events) = super::told(Supervisor::one_for_all().grace(HOUR));
    let app = supervisor
        .child("a", super::part("a", &log))
        .child("b", super::part("b", &log))
        .temporary()
        .child_grace(GRACE)
        .start()
        .unwrap();
    let b = get(&app, "b");
    let gate = keep_busy(&b);
    assert!(get(&app, "a").ask(Fail).is_err());
    events.await_restarts(&["a"]);
    gate.open();
    assert_eq!(b.join(), Exit::Killed);
    until(|| app.children()[1].state == ChildState::Ended);
    assert_eq!(get(&app, "a").ask(Count), Ok(1));
}
