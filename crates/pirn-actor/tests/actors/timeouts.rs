//! Messages that take too long.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::supervisor::Supervisor;
use pirn_actor::{AskError, Builder, Exit, Ref, Restarts};
use std::io::Read;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const HOUR: Duration = Duration::from_secs(3600);
const SOON: Duration = Duration::from_millis(5);

/// Actors that are made again and again, and count how often.
fn counting(timeout: Duration) -> (Ref<u32>, Arc<AtomicU32>) {
    let made = Arc::new(AtomicU32::new(0));
    let makes = Arc::clone(&made);
    let actor = Builder::new()
        .message_timeout(timeout)
        .restarts(Restarts::at_most(100))
        .spawn(move || makes.fetch_add(1, Ordering::SeqCst))
        .unwrap();
    actor.ready().unwrap();
    (actor, made)
}

#[watched]
fn a_message_that_takes_too_long_is_interrupted_and_the_state_made_anew() {
    let (actor, _) = counting(SOON);
    let begun = Instant::now();
    let slept = actor.run(|_| thread::sleep_interruptible(HOUR).is_err());
    assert_eq!(slept, Ok(true), "the asker gets what the handler returns");
    assert!(begun.elapsed() >= SOON);
    assert_eq!(actor.run(|made| *made), Ok(1));
}

#[watched]
fn a_blocking_call_fails_and_what_panics_then_has_failed() {
    let (actor, _) = counting(SOON);
    let (mut reader, writer) = std::io::pipe().unwrap();
    let read = actor.run(move |_| reader.read(&mut [0; 8]).unwrap());
    assert!(matches!(read, Err(AskError::Failed(_))));
    assert_eq!(actor.run(|made| *made), Ok(1));
    drop(writer);
}

#[watched]
fn the_next_message_and_the_recipe_are_not_interrupted() {
    const LIMIT: Duration = Duration::from_micros(200);
    let wrong = Arc::new(AtomicU32::new(0));
    let sees = Arc::clone(&wrong);
    let look = move || {
        sees.fetch_add(u32::from(thread::is_interrupted()), Ordering::SeqCst);
    };
    let looks = look.clone();
    let actor = Builder::new()
        .message_timeout(LIMIT)
        .restarts(Restarts::at_most(usize::MAX))
        .spawn(move || {
            looks();
            thread::yield_now();
            looks();
        })
        .unwrap();
    let ended = Arc::new(Mutex::new(Instant::now()));
    for n in 0..300_u64 {
        // Some return just when their time is up.
        let takes = Duration::from_micros(190 + n % 20);
        let ends = Arc::clone(&ended);
        let sleeps = move |(): &mut ()| {
            thread::sleep(takes);
            *ends.lock().unwrap() = Instant::now();
        };
        actor.run_detached(sleeps).unwrap();
        let (look, ended) = (look.clone(), Arc::clone(&ended));
        let looks = move |(): &mut ()| {
            let interrupted = thread::is_interrupted();
            // It began after the one before had ended. On a busy machine it may be late itself.
            if interrupted && ended.lock().unwrap().elapsed() < LIMIT {
                look();
            }
        };
        actor.run_detached(looks).unwrap();
    }
    actor.run_detached(|()| ()).unwrap();
    until(|| actor.is_empty());
    assert_eq!(wrong.load(Ordering::SeqCst), 0);
}

#[watched]
fn a_handler_that_does_not_hear_is_waited_for() {
    let (actor, made) = counting(SOON);
    let (interrupted, gate) = (Gate::new(), Gate::new());
    let (is_interrupted, blocked) = (interrupted.clone(), gate.clone());
    let waits = move |made: &mut u32| {
        until(thread::is_interrupted);
        is_interrupted.open();
        blocked.wait();
        *made
    };
    let waits = actor.run_later(waits).unwrap();
    let later = actor.run_later(|made| *made).unwrap();
    interrupted.wait();
    let states = made.load(Ordering::SeqCst);
    assert_eq!(states, 1, "no second state beside the first");
    gate.open();
    assert_eq!(waits.recv(), Ok(0));
    assert_eq!(later.recv(), Ok(1));
}

#[watched]
fn messages_in_time_are_left_alone_however_many() {
    let (actor, made) = counting(HOUR);
    for _ in 0..10_000 {
        actor.run_detached(|_| ()).unwrap();
    }
    assert_eq!(actor.run(|made| *made), Ok(0));
    assert_eq!(made.load(Ordering::SeqCst), 1);
    let (forever, _) = counting(Duration::MAX);
    assert_eq!(forever.run(|made| *made), Ok(0));
}

#[watched]
fn a_message_after_a_pause_has_its_own_time() {
    let timeout = Duration::from_millis(300);
    let (actor, made) = counting(timeout);
    actor.run(|_| ()).unwrap();
    // The timer of the first message finds nothing to interrupt.
    let idle = Instant::now();
    until(|| idle.elapsed() > timeout);
    // On a machine with much else to do the first message may have taken too long.
    let before = made.load(Ordering::SeqCst);
    let begun = Instant::now();
    let sleeps = |_: &mut u32| thread::sleep_interruptible(HOUR).is_err();
    assert_eq!(actor.run(sleeps), Ok(true));
    assert!(begun.elapsed() >= timeout);
    assert_eq!(actor.run(|made| *made), Ok(before), "made anew once");
}

#[watched]
fn without_restarts_it_is_the_end() {
    let builder = Builder::new().message_timeout(SOON);
    let actor = builder.function(|n: u64| thread::sleep_interruptible(HOUR).map_err(|_| n));
    assert_eq!(actor.ask(7), Ok(Err(7)));
    let Exit::Failed(failure) = actor.join() else {
        panic!("it has failed")
    };
    assert_eq!(failure.to_string(), "u64 took longer than 5ms");
}

#[watched]
fn a_supervisor_restarts_what_took_too_long() {
    let app = Supervisor::one_for_one()
        .child("a", || 0_u32)
        .builder(Builder::new().message_timeout(SOON))
        .start()
        .unwrap();
    let a: Ref<u32> = app.get("a").unwrap();
    let slept = a.run(|n| {
        *n = 5;
        thread::sleep_interruptible(HOUR).is_err()
    });
    assert_eq!(slept, Ok(true));
    assert_eq!(a.run(|n| *n), Ok(0));
    until(|| app.children()[0].restarts == 1);
}
