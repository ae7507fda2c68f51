//! Panics whose payload panics when it is dropped: they are failures like any other.

#[path = "actors/common.rs"]
mod common;

use common::{Gate, until, watched};
use pirn::thread::Panic;
use pirn_actor::process::{Inbox, Process};
use pirn_actor::registry::Registry;
use pirn_actor::supervisor::Supervisor;
use pirn_actor::topic::Topic;
use pirn_actor::{
    self as actor, AskError, Builder, Context, Exit, Function, Handler, Ref, Restarts,
};
use pirn_testing::{Bomb, burst, is_bomb};
use std::fmt::Debug;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

/// Panics for an odd number.
fn even(n: u32) -> u32 {
    if n % 2 == 1 {
        burst();
    }
    n
}

fn is_failed<T: Debug>(result: Result<T, AskError>) -> bool {
    matches!(result, Err(AskError::Failed(_)))
}

fn has_failed(exit: &Exit) -> bool {
    matches!(exit, Exit::Failed(_))
}

struct Careful;

impl Handler<u32> for Careful {
    type Reply = u32;
    fn handle(&mut self, n: u32, _: &Context<Careful>) -> u32 {
        even(n)
    }
}

#[watched]
fn an_actor_ends_and_tells_all() {
    let fragile = actor::spawn(Careful);
    let monitor = fragile.monitor();
    fragile.on_exit(|_| burst());
    let (tell, told) = mpsc::channel();
    fragile.on_exit(move |exit| tell.send(exit.clone()).unwrap());
    assert!(is_failed(fragile.ask(1)));
    assert!(has_failed(&fragile.join()));
    assert!(has_failed(&monitor.recv().unwrap()));
    assert!(has_failed(&told.recv().unwrap()));
    assert_eq!(fragile.ask(2), Err(AskError::Gone));
}

#[watched]
fn an_actor_is_restarted() {
    let restarts = Restarts::at_most(3);
    let fragile = Builder::new().restarts(restarts).spawn(|| Careful).unwrap();
    for code in [|_: &mut Careful| burst(), |_: &mut Careful| ()] {
        let _ = fragile.run(code);
    }
    assert!(is_failed(fragile.ask(1)));
    assert_eq!(fragile.ask(2), Ok(2));
}

#[watched]
fn an_answer_that_nobody_gets_costs_the_actor_nothing() {
    struct Answer(Bomb);
    let gate = Gate::new();
    let begun = Gate::new();
    let (begins, waits) = (begun.clone(), gate.clone());
    let slow = actor::function(move |bomb| {
        begins.open();
        waits.wait();
        Answer(Bomb(bomb))
    });
    let reply = slow.ask_later(1).unwrap();
    begun.wait();
    drop(reply);
    gate.open();
    assert_eq!(slow.ask(0).map(|answer| answer.0.0), Ok(0));
    slow.close();
    assert_eq!(slow.join(), Exit::Closed);
}

#[watched]
fn a_recipe_fails() {
    let made = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&made);
    let recipe = move || match counts.fetch_add(1, Ordering::SeqCst) {
        0..2 => burst(),
        _ => Careful,
    };
    let builder = Builder::new().restarts(Restarts::at_most(3));
    let fragile = builder.spawn(recipe).unwrap();
    assert_eq!(fragile.ask(2), Ok(2));
    assert_eq!(made.load(Ordering::SeqCst), 3);
    let never = Builder::new().spawn(|| -> Careful { burst() }).unwrap();
    assert!(has_failed(&never.join()));
}

#[watched]
fn a_process_ends() {
    let undelivered = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&undelivered);
    let gate = Gate::new();
    let sent = gate.clone();
    let process = Builder::new()
        .on_undelivered(move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            burst();
        })
        .process(move |inbox: &mut Inbox<u32>| {
            let _ = inbox.recv();
            sent.wait();
            burst()
        })
        .unwrap();
    for n in 0..3 {
        process.send(n).unwrap();
    }
    gate.open();
    assert!(has_failed(&process.join()));
    assert_eq!(undelivered.load(Ordering::SeqCst), 2);
}

#[watched]
fn a_supervisor_restarts_its_children() {
    let ran = Arc::new(AtomicUsize::new(0));
    let runs = Arc::clone(&ran);
    let tree = Supervisor::one_for_one()
        .restarts(9, Duration::from_secs(3600))
        .on_event(|_| burst())
        .child("state", || Careful)
        .process("process", move |inbox: &mut Inbox<u32>| {
            runs.fetch_add(1, Ordering::SeqCst);
            if inbox.recv() == Ok(1) {
                burst();
            }
        })
        .start()
        .unwrap();
    let state: Ref<Careful> = tree.get("state").unwrap();
    assert!(is_failed(state.ask(1)));
    assert_eq!(state.ask(2), Ok(2));
    tree.get::<Process<u32>>("process")
        .unwrap()
        .send(1)
        .unwrap();
    until(|| ran.load(Ordering::SeqCst) == 2);
    tree.stop();
    assert_eq!(tree.join(), Exit::Stopped);

    let never = Supervisor::one_for_one().child("never", || -> Careful { burst() });
    assert!(never.start().is_err());
}

#[watched]
fn a_worker_of_a_pool_is_restarted() {
    let restarts = Restarts::at_most(9);
    let pool = Builder::new()
        .restarts(restarts)
        .pool(2..=2)
        .spawn(|| Careful)
        .unwrap();
    for n in 0..4 {
        assert_eq!(is_failed(pool.ask(n)), n % 2 == 1);
    }
}

#[watched]
fn actors_without_a_mailbox_answer() {
    let each = actor::flow::each(even);
    assert!(is_failed(each.ask(1)));
    assert_eq!(each.ask(2), Ok(2));
}

#[watched]
fn stages_and_batches_answer() {
    let line = actor::function(|n: u32| n).then(actor::function(even));
    assert!(is_failed(line.ask(1)));
    let line = actor::function(even).then(actor::function(|n: u32| n));
    assert!(is_failed(line.ask(1)));
    let batch = actor::flow::batch(1, Duration::from_secs(3600), |ns: Vec<u32>| even(ns[0]));
    assert!(is_failed(batch.ask(1)));
    assert!(has_failed(&batch.join()));
}

#[watched]
fn a_transaction_fails() {
    let number = actor::spawn(7);
    let outcome = number.transaction(|n| -> Result<(), ()> {
        *n = 8;
        burst()
    });
    assert!(is_failed(outcome));
    assert_eq!(number.run(|n| *n), Ok(7));
}

#[watched]
fn timers_go_on() {
    /// Its copies cannot be made.
    struct Single;
    impl Clone for Single {
        fn clone(&self) -> Single {
            burst()
        }
    }
    let silent = actor::consumer(|_: Single| ());
    let timer = actor::time::every(&silent, Duration::from_millis(1), Single);
    until(|| timer.is_over());
    let (tell, told) = mpsc::channel();
    let ticks = actor::consumer(move |n: u32| tell.send(n).unwrap());
    let _timer = actor::time::send_after(&ticks, Duration::from_millis(1), 7);
    assert_eq!(told.recv(), Ok(7));
}

#[watched]
fn subscribers_do_not_concern_each_other() {
    for topic in [Topic::new(), Topic::per_subscriber()] {
        let (tell, told) = mpsc::channel();
        let _first = topic.subscribe_with(|_: u32| burst());
        let _second = topic.subscribe_with(move |n| tell.send(n).unwrap());
        for n in 0..3 {
            assert_eq!(topic.publish(n), 2);
            assert_eq!(told.recv(), Ok(n));
        }
    }
}

#[watched]
fn a_registry_goes_on_telling() {
    let registry = Registry::new();
    let told = Arc::new(AtomicUsize::new(0));
    let counts = Arc::clone(&told);
    registry.on_undelivered(move |_| {
        counts.fetch_add(1, Ordering::SeqCst);
        burst();
    });
    for n in 0..2 {
        let early = registry.send_early("nobody", n, 10, Duration::from_millis(1));
        early.unwrap();
    }
    until(|| told.load(Ordering::SeqCst) == 2);
}

#[watched]
fn a_scope_ends_its_actors_and_passes_the_panic_on() {
    let ended = AtomicBool::new(false);
    let panic = Panic::catch(|| {
        actor::scope(|s| {
            let waits = s.spawn(Function::new(|()| {
                while pirn::thread::sleep_interruptible(Duration::from_secs(3600)).is_ok() {}
                ended.store(true, Ordering::SeqCst);
                burst()
            }));
            waits.send(()).unwrap();
            burst()
        })
    });
    assert!(is_bomb(panic.unwrap_err().into_payload()));
}
