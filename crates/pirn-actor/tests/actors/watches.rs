//! Ends of others, as messages.

use crate::common::{Gate, until, watched};
use pirn_actor::process::{Inbox, RecvError};
use pirn_actor::{self as actor, Builder, Exit};
use std::sync::{Arc, mpsc};

#[derive(Debug, PartialEq)]
enum Message {
    Down(&'static str, Exit),
    Other(u32),
}

use Message::{Down, Other};

#[watched]
fn the_end_of_what_is_watched_comes_as_a_message() {
    let (a, b) = (actor::spawn(1), actor::consumer(|()| ()));
    let c = actor::process::spawn(|inbox: &mut Inbox<()>| inbox.recv());
    let (watched_a, watched_b, watched_c) = (a.clone(), b.clone(), c.clone());
    let (begun, begins) = mpsc::channel();
    let watches = actor::process::spawn(move |inbox: &mut Inbox<Message>| {
        inbox.watch(&watched_a, |exit| Down("a", exit));
        inbox.watch(&watched_b, |exit| Down("b", exit));
        inbox.watch(&watched_c, |exit| Down("c", exit));
        begun.send(()).unwrap();
        [inbox.recv(), inbox.recv(), inbox.recv()]
    });
    begins.recv().unwrap();
    // Watchers are told in the order in which they came.
    let (tell, told) = mpsc::channel();
    let tells = tell.clone();
    a.on_exit(move |_| tells.send(()).unwrap());
    b.on_exit(move |_| tell.send(()).unwrap());
    a.kill();
    told.recv().unwrap();
    b.stop();
    told.recv().unwrap();
    c.close();
    let ends = watches.into_result().unwrap();
    let of = |name, exit| Ok(Down(name, exit));
    assert_eq!(
        ends,
        [
            of("a", Exit::Killed),
            of("b", Exit::Stopped),
            of("c", Exit::Closed)
        ]
    );
}

#[watched]
fn what_has_ended_already_is_a_message_at_once() {
    let ended = actor::spawn(1);
    ended.stop();
    ended.join();
    let watches = actor::process::spawn(move |inbox: &mut Inbox<Message>| {
        inbox.watch(&ended, |exit| Down("it", exit));
        inbox.try_recv()
    });
    let down = watches.into_result().unwrap();
    assert_eq!(down, Ok(Down("it", Exit::Stopped)));
}

#[watched]
fn an_end_is_not_lost_in_a_full_mailbox() {
    let ends = actor::spawn(1);
    let watched = ends.clone();
    let (gate, begun) = (Gate::new(), Gate::new());
    let (blocked, begins) = (gate.clone(), begun.clone());
    let watches = Builder::new()
        .capacity(1)
        .process(move |inbox: &mut Inbox<Message>| {
            inbox.watch(&watched, |exit| Down("it", exit));
            begins.open();
            blocked.wait();
            [inbox.recv(), inbox.recv()]
        })
        .unwrap();
    begun.wait();
    watches.send(Other(1)).unwrap();
    assert!(watches.try_send(Other(2)).unwrap_err().is_full());
    let (tell, told) = mpsc::channel();
    ends.on_exit(move |_| tell.send(()).unwrap());
    ends.stop();
    told.recv().unwrap();
    gate.open();
    let received = watches.into_result().unwrap();
    assert_eq!(received, [Ok(Down("it", Exit::Stopped)), Ok(Other(1))]);
}

#[watched]
fn a_watch_keeps_no_process_open() {
    let lives = actor::spawn(1);
    let watched = lives.clone();
    let watches = actor::process::spawn(move |inbox: &mut Inbox<Message>| {
        inbox.watch(&watched, |exit| Down("it", exit));
        inbox.recv()
    });
    assert_eq!(watches.close_and_join().unwrap(), Err(RecvError::Closed));
    assert_eq!(lives.exit(), None);
}

#[watched]
fn a_watch_goes_with_its_process() {
    let lives = actor::spawn(1);
    let held = Arc::new(());
    for _ in 0..10 {
        let (watched, kept) = (lives.clone(), Arc::clone(&held));
        let watches = actor::process::spawn(move |inbox: &mut Inbox<Message>| {
            inbox.watch(&watched, move |exit| {
                drop(kept);
                Down("it", exit)
            });
        });
        watches.join();
    }
    until(|| Arc::strong_count(&held) == 1);
    assert_eq!(lives.run(|n| *n), Ok(1));
}

#[watched]
fn a_process_that_watches_many_keeps_those_that_live() {
    let lives = actor::spawn(1);
    let watched = lives.clone();
    let watches = actor::process::spawn(move |inbox: &mut Inbox<Message>| {
        inbox.watch(&watched, |exit| Down("lives", exit));
        drop(watched);
        for _ in 0..1000 {
            let short = actor::spawn(());
            inbox.watch(&short, |exit| Down("short", exit));
            short.stop();
            assert_eq!(inbox.recv(), Ok(Down("short", Exit::Stopped)));
        }
        drop(lives);
        inbox.recv()
    });
    let last = watches.into_result().unwrap();
    assert_eq!(last, Ok(Down("lives", Exit::Closed)));
}

#[watched]
fn a_function_that_panics_keeps_no_other_from_being_told() {
    let actor = actor::spawn(1);
    let (tell, told) = mpsc::channel();
    actor.on_exit(|_| std::panic::resume_unwind(Box::new("told")));
    actor.on_exit(move |exit| tell.send(exit.clone()).unwrap());
    let monitor = actor.monitor();
    actor.stop();
    assert_eq!(told.recv(), Ok(Exit::Stopped));
    assert_eq!(monitor.recv().unwrap(), Exit::Stopped);
}
