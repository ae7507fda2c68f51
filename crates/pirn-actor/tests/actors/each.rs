//! Actors with a thread for each message.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::{self as actor, AskError, Builder, Exit, Overflow};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

const LONG: Duration = Duration::from_secs(3600);

#[watched]
fn each_message_has_a_thread_of_its_own() {
    for builder in [Builder::new(), Builder::new().platform_threads()] {
        let inside = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&inside);
        let meet = builder.each(move |all: usize| {
            count.fetch_add(1, Ordering::SeqCst);
            until(|| count.load(Ordering::SeqCst) >= all);
            thread::current().id()
        });
        let replies: Vec<_> = (0..20).map(|_| meet.ask_later(20).unwrap()).collect();
        let threads = replies.into_iter().map(|reply| reply.recv().unwrap());
        let mut threads: Vec<_> = threads.map(|id| format!("{id:?}")).collect();
        threads.sort();
        threads.dedup();
        assert_eq!(threads.len(), 20);
        assert_eq!(inside.load(Ordering::SeqCst), 20);
    }
}

#[watched]
fn no_more_messages_than_the_capacity_are_handled_at_the_same_time() {
    let (now, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (inside, record) = (Arc::clone(&now), Arc::clone(&most));
    let limited = Builder::new().capacity(3).each(move |()| {
        record.fetch_max(inside.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        thread::yield_now();
        inside.fetch_sub(1, Ordering::SeqCst);
    });
    let senders: Vec<_> = (0..8)
        .map(|_| {
            let limited = limited.clone();
            thread::spawn(move || (0..100).for_each(|_| limited.send(()).unwrap()))
        })
        .collect();
    senders
        .into_iter()
        .for_each(|sender| sender.join().unwrap());
    limited.close();
    assert_eq!(limited.join(), Exit::Closed);
    assert_eq!(now.load(Ordering::SeqCst), 0, "close waits for all");
    assert!(most.load(Ordering::SeqCst) <= 3);
}

#[watched]
fn a_full_each_does_what_its_overflow_says() {
    for overflow in [
        Overflow::Fail,
        Overflow::DropNew,
        Overflow::DropOld,
        Overflow::Stop,
    ] {
        let full = Builder::new().capacity(1).overflow(overflow);
        let full = full.each(|gate: Gate| gate.wait());
        let gate = Gate::new();
        full.send(gate.clone()).unwrap();
        match (overflow, full.ask(gate.clone())) {
            (Overflow::Fail, Err(AskError::Full)) => {}
            (Overflow::DropNew | Overflow::DropOld, Err(AskError::Gone)) => {}
            (Overflow::Stop, Err(AskError::Gone)) => {}
            other => panic!("{other:?}"),
        }
        if overflow != Overflow::Stop {
            full.send_urgent(gate.clone()).unwrap();
        }
        gate.open();
        full.close();
        let failed = matches!(full.join(), Exit::Failed(_));
        assert_eq!(failed, overflow == Overflow::Stop);
    }
}

#[watched]
fn a_panic_concerns_its_message_only() {
    let divide = actor::flow::each(|n: u32| 100 / n);
    assert!(matches!(divide.ask(0), Err(AskError::Failed(_))));
    divide.send(0).unwrap();
    assert_eq!(divide.ask(5), Ok(20));
    divide.close();
    assert_eq!(divide.join(), Exit::Closed);
}

#[watched]
fn a_kill_interrupts_every_message_and_a_stop_waits_for_them() {
    let sleep = || actor::flow::each(|time: Duration| thread::sleep_interruptible(time).is_err());
    let killed = sleep();
    let replies: Vec<_> = (0..10).map(|_| killed.ask_later(LONG).unwrap()).collect();
    killed.kill();
    assert_eq!(killed.join(), Exit::Killed);
    assert!(replies.into_iter().all(|reply| reply.recv() == Ok(true)));
    let gate = Gate::new();
    let stopped = actor::flow::each(|gate: Gate| gate.wait());
    let reply = stopped.ask_later(gate.clone()).unwrap();
    stopped.stop();
    assert_eq!(stopped.exit(), None);
    assert!(stopped.send(gate.clone()).is_err());
    gate.open();
    assert_eq!((reply.recv(), stopped.join()), (Ok(()), Exit::Stopped));
}

#[watched]
fn an_each_is_closed_when_nobody_can_send_to_it() {
    let (tell, told) = mpsc::channel();
    let listen = actor::flow::each(move |n: u32| tell.send(n).unwrap());
    let monitor = listen.monitor();
    (0..50).for_each(|n| listen.send(n).unwrap());
    drop(listen);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    let mut all: Vec<_> = told.iter().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..50));
}
