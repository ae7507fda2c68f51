//! Messages at a limited rate.

use crate::common::{Gate, until, watched};
use pirn_actor::{self as actor, Actor, AskError, Builder, Context, Exit, Handler, Restarts};
use std::sync::{Arc, Mutex, mpsc};
use std::time::{Duration, Instant};

const PAUSE: Duration = Duration::from_millis(3);
const HOUR: Duration = Duration::from_secs(3600);

/// Checks that messages have started apart from each other, the first one after `begin`. A handler
/// may look at the time late, so two looks may be closer together than two starts.
fn assert_apart(begin: Instant, starts: &[Instant]) {
    for (start, before) in starts.iter().zip(0..) {
        assert!(*start - begin >= before * PAUSE, "{begin:?} {starts:?}");
    }
}

#[watched]
fn messages_that_are_sent_start_apart_and_all_are_handled() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&starts);
    let note = actor::flow::rate_limited(PAUSE, move |_: u32| {
        noted.lock().unwrap().push(Instant::now())
    });
    let begin = Instant::now();
    (0..8).for_each(|n| note.send(n).unwrap());
    note.close();
    assert_eq!(note.join(), Exit::Closed);
    let starts = starts.lock().unwrap();
    assert_eq!(starts.len(), 8);
    assert_apart(begin, &starts);
}

#[watched]
fn asks_start_apart_too_even_when_the_actor_is_idle_between_them() {
    let now = actor::flow::rate_limited(PAUSE, |()| Instant::now());
    let begin = Instant::now();
    let starts: Vec<_> = (0..5).map(|_| now.ask(()).unwrap()).collect();
    assert_apart(begin, &starts);
}

#[watched]
fn a_builder_limits_the_rate_of_any_actor_and_restarts_do_not_lift_it() {
    struct Careless;
    impl Handler<Arc<Mutex<Vec<Instant>>>> for Careless {
        type Reply = ();
        fn handle(&mut self, starts: Arc<Mutex<Vec<Instant>>>, _: &Context<Self>) {
            starts.lock().unwrap().push(Instant::now());
            std::panic::resume_unwind(Box::new("careless"));
        }
    }
    let builder = Builder::new()
        .rate_limit(PAUSE)
        .restarts(Restarts::at_most(10));
    let careless = builder.spawn(|| Careless).unwrap();
    let starts = Arc::new(Mutex::new(Vec::new()));
    let begin = Instant::now();
    for _ in 0..4 {
        assert!(careless.ask(Arc::clone(&starts)).is_err());
    }
    assert_apart(begin, &starts.lock().unwrap());
}

#[watched]
fn a_stop_or_a_kill_ends_the_pause() {
    for (end, exit) in [
        (<dyn Actor>::stop as fn(&_), Exit::Stopped),
        (<dyn Actor>::kill, Exit::Killed),
    ] {
        let seldom = actor::flow::rate_limited(HOUR, |n: u32| n);
        assert_eq!(seldom.ask(1), Ok(1));
        let waiting = seldom.ask_later(2).unwrap();
        end(&*seldom);
        assert_eq!(seldom.join(), exit);
        assert_eq!(waiting.recv(), Err(AskError::Gone));
    }
}

#[watched]
fn an_actor_that_has_nothing_left_ends_without_a_pause() {
    let seldom = actor::flow::rate_limited(HOUR, |n: u32| n);
    assert_eq!(seldom.ask(1), Ok(1));
    seldom.close();
    assert_eq!(seldom.join(), Exit::Closed);

    // Closed while the message is being handled.
    let (gate, begun) = (Gate::new(), Gate::new());
    let (blocked, begins) = (gate.clone(), begun.clone());
    let seldom = actor::flow::rate_limited(HOUR, move |()| {
        begins.open();
        blocked.wait();
    });
    seldom.send(()).unwrap();
    begun.wait();
    seldom.close();
    gate.open();
    assert_eq!(seldom.join(), Exit::Closed);
}

#[watched]
fn a_time_that_is_too_long_is_for_ever_and_can_be_ended() {
    let (tell, told) = mpsc::channel();
    let once = actor::flow::rate_limited(Duration::MAX, move |n: u32| tell.send(n).unwrap());
    once.send(1).unwrap();
    once.send(2).unwrap();
    assert_eq!(told.recv(), Ok(1));
    once.kill();
    assert_eq!(once.join(), Exit::Killed);
    drop(once);
    assert_eq!(told.try_iter().count(), 0);
}

#[watched]
fn a_message_that_takes_longer_than_the_pause_is_followed_at_once() {
    let (step, steps) = mpsc::channel();
    let slow = actor::flow::rate_limited(PAUSE, move |n: u32| {
        steps.recv().unwrap();
        n
    });
    let replies = [1, 2].map(|n| slow.ask_later(n).unwrap());
    let start = Instant::now();
    until(|| start.elapsed() > 2 * PAUSE);
    step.send(()).unwrap();
    step.send(()).unwrap();
    assert_eq!(replies.map(|reply| reply.recv()), [Ok(1), Ok(2)]);
}

#[watched]
fn urgent_messages_keep_to_the_rate() {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let noted = Arc::clone(&starts);
    let note = actor::flow::rate_limited(PAUSE, move |n: u32| {
        noted.lock().unwrap().push((n, Instant::now()));
    });
    let begin = Instant::now();
    note.send(0).unwrap();
    until(|| starts.lock().unwrap().len() == 1);
    note.send(1).unwrap();
    note.send_urgent(2).unwrap();
    note.close();
    note.join();
    let (order, starts): (Vec<_>, Vec<_>) = starts.lock().unwrap().iter().copied().unzip();
    assert_eq!(order.len(), 3);
    assert_apart(begin, &starts);
}
