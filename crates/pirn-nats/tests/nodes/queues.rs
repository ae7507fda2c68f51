//! Durable queues.

use crate::bank::{Deposit, Echo};
use crate::children::Process;
use crate::common::{until, watched};
use crate::forwarder::Forwarder;
use crate::server::Server;
use pirn::thread;
use pirn_actor as actor;
use pirn_nats::{Call, Durable, DurableOptions, Node};
use std::sync::mpsc;
use std::time::Duration;

const TENTH: Duration = Duration::from_millis(100);

fn options() -> DurableOptions {
    DurableOptions::new().backoff(TENTH / 10..TENTH)
}

fn queue(node: &Node, options: DurableOptions) -> Durable<Deposit> {
    node.durable_with("work", options).unwrap()
}

#[watched]
fn messages_wait_for_a_worker_and_are_handled_once_each_in_order() {
    let Some(server) = Server::start() else {
        return;
    };
    let (a, b) = (server.node("a"), server.node("b"));
    let work = queue(&a, options());
    (0..50).for_each(|n| work.send(Deposit(n)).unwrap());
    assert_eq!(work.len(), Ok(50));
    let (tell, told) = mpsc::channel();
    let worker = actor::function(move |Deposit(n)| tell.send(n).unwrap());
    let workers = queue(&b, options()).serve(&worker).unwrap();
    assert!((0..50).all(|n| told.recv() == Ok(n)));
    until(|| work.is_empty().unwrap());
    assert!(told.try_recv().is_err());
    workers.stop();
}

#[watched]
fn messages_survive_the_server() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let node = Node::connect(&forwarder.url(), "test").unwrap();
    let work = queue(&node, options());
    work.send(Deposit(7)).unwrap();
    let server = server.restart();
    forwarder.aim(server.port());
    let (tell, told) = mpsc::channel();
    let worker = actor::function(move |Deposit(n)| tell.send(n).unwrap_or(()));
    let _workers = work.serve(&worker).unwrap();
    assert_eq!(told.recv(), Ok(7));
    until(|| work.is_empty() == Ok(true));
}

#[watched]
fn a_queue_outlives_the_servers_store() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let node = Node::connect(&forwarder.url(), "test").unwrap();
    let work = queue(&node, options());
    let (tell, told) = mpsc::channel();
    let worker = actor::function(move |Deposit(n)| tell.send(n).unwrap_or(()));
    let workers = work.serve(&worker).unwrap();
    work.send(Deposit(1)).unwrap();
    assert_eq!(told.recv(), Ok(1));
    let server = server.restart_empty();
    forwarder.aim(server.port());
    until(|| node.is_connected());
    until(|| work.send(Deposit(2)).is_ok());
    assert_eq!(told.recv(), Ok(2));
    until(|| work.is_empty() == Ok(true));
    assert_eq!(work.dead_letters(1), Ok(vec![]));
    workers.stop();
}

#[watched]
fn what_fails_is_tried_again_and_buried_after_n_attempts() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let work = queue(&node, options().attempts(3));
    let (tell, told) = mpsc::channel();
    let worker = actor::Builder::new()
        .restarts(actor::Restarts::at_most(100))
        .spawn(move || {
            let tell = tell.clone();
            actor::Function::new(move |Deposit(n)| {
                tell.send(n).unwrap();
                assert_ne!(n, 13, "bad luck");
            })
        })
        .unwrap();
    let _workers = work.serve(&worker).unwrap();
    work.send(Deposit(13)).unwrap();
    work.send(Deposit(1)).unwrap();
    until(|| !work.dead_letters(10).unwrap().is_empty());
    let letters = work.dead_letters(10).unwrap();
    assert_eq!(letters.len(), 1);
    assert_eq!(
        (&*letters[0].kind, &*letters[0].body),
        ("bank.Deposit", &b"13"[..])
    );
    assert!(letters[0].why.contains("bad luck"), "{}", letters[0].why);
    until(|| work.is_empty() == Ok(true));
    let mut tried: Vec<_> = told.try_iter().collect();
    tried.sort_unstable();
    assert_eq!(tried, [1, 13, 13, 13]);
}

#[watched]
fn an_answer_may_say_that_it_is_not_done() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let work = queue(&node, options());
    let mut attempts = 0;
    let worker = actor::function(move |Deposit(_)| {
        attempts += 1;
        if attempts < 3 {
            Err("not yet".to_string())
        } else {
            Ok(())
        }
    });
    let (tell, told) = mpsc::channel();
    let is_done = move |answer: &Result<(), String>| {
        tell.send(answer.is_ok()).unwrap();
        answer.is_ok()
    };
    let _workers = work.serve_if(&worker, is_done).unwrap();
    work.send(Deposit(1)).unwrap();
    assert_eq!([(); 3].map(|()| told.recv().unwrap()), [false, false, true]);
    until(|| work.is_empty() == Ok(true));
}

#[watched]
fn a_handler_may_take_longer_than_the_queues_patience() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let work = queue(&node, options().patience(TENTH * 20).at_once(2));
    let (tell, told) = mpsc::channel();
    let spawn = || {
        let tell = tell.clone();
        actor::function(move |Deposit(n)| {
            tell.send(n).unwrap();
            thread::sleep(TENTH * 50);
        })
    };
    let (a, b) = (spawn(), spawn());
    let _workers = (work.serve(&a).unwrap(), work.serve(&b).unwrap());
    work.send(Deposit(1)).unwrap();
    assert_eq!(told.recv(), Ok(1));
    until(|| work.is_empty() == Ok(true));
    assert!(told.try_recv().is_err(), "another worker got it, too");
}

#[watched]
fn a_message_of_a_worker_that_is_killed_is_somebody_elses() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut child = Process::start("worker", &server.url());
    assert_eq!(child.line(), "ready");
    let node = server.node("a");
    let work = queue(&node, options().patience(Duration::from_secs(1)));
    work.send(Deposit(5)).unwrap();
    assert_eq!(child.line(), "got 5");
    let (tell, told) = mpsc::channel();
    let worker = actor::function(move |Deposit(n)| tell.send(n).unwrap_or(()));
    let _workers = work.serve(&worker).unwrap();
    // As long as it is at work, it stays its own.
    assert!(told.recv_timeout(Duration::from_secs(2)).is_err());
    child.signal(libc::SIGKILL);
    assert_eq!(told.recv(), Ok(5));
}

#[watched]
fn the_attempt_of_a_worker_that_is_killed_counts() {
    for (attempts, left, why) in [
        (1, &[][..], "its worker was lost"),
        (2, &[5], "bad luck"),
        (3, &[5, 5], "bad luck"),
    ] {
        let Some(server) = Server::start() else {
            return;
        };
        let mut child = Process::start("worker", &server.url());
        assert_eq!(child.line(), "ready");
        let node = server.node("a");
        let options = options().patience(Duration::from_secs(1));
        let work = queue(&node, options.attempts(attempts));
        work.send(Deposit(5)).unwrap();
        assert_eq!(child.line(), "got 5");
        child.signal(libc::SIGKILL);
        let (tell, told) = mpsc::channel();
        let worker = actor::Builder::new()
            .restarts(actor::Restarts::at_most(100))
            .spawn(move || {
                let tell = tell.clone();
                actor::Function::new(move |Deposit(n)| -> () {
                    tell.send(n).unwrap();
                    panic!("bad luck");
                })
            })
            .unwrap();
        let _workers = work.serve(&worker).unwrap();
        until(|| !work.dead_letters(1).unwrap().is_empty());
        let letter = work.dead_letters(1).unwrap().remove(0);
        assert!(letter.why.contains(why), "{attempts}: {}", letter.why);
        assert_eq!(Vec::from_iter(told.try_iter()), left, "of {attempts}");
    }
}

#[watched]
fn the_same_identity_is_taken_once() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let work = queue(&node, options());
    assert_eq!(work.send_once("invoice-17", &Deposit(1)), Ok(true));
    assert_eq!(work.send_once("invoice-17", &Deposit(1)), Ok(false));
    assert_eq!(work.send_once("invoice-18", &Deposit(1)), Ok(true));
    work.send(Deposit(1)).unwrap();
    assert_eq!(work.len(), Ok(3));
}

#[watched]
fn an_actor_that_has_ended_leaves_messages_to_others() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let work = queue(&node, options().attempts(1));
    let careless = actor::function(|Deposit(_)| ());
    let workers = work.serve(&careless).unwrap();
    careless.stop();
    careless.join();
    workers.stop();
    work.send(Deposit(1)).unwrap();
    let (tell, told) = mpsc::channel();
    let worker = actor::function(move |Deposit(n)| tell.send(n).unwrap_or(()));
    let _workers = work.serve(&worker).unwrap();
    assert_eq!(told.recv(), Ok(1));
    assert_eq!(work.dead_letters(10), Ok(vec![]));
}

#[watched]
fn queues_refuse_what_is_too_large_and_bury_what_they_do_not_know() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let echoes = node
        .durable_with::<Echo>("work", options().attempts(1))
        .unwrap();
    let error = echoes.send(Echo("x".repeat(2 << 20))).unwrap_err();
    assert!(
        error.to_string().contains("the server takes 1048576"),
        "{error}"
    );
    echoes.send(Echo("x".to_string())).unwrap();
    let work = queue(&node, options().attempts(1));
    let worker = actor::function(|Deposit(_)| ());
    let _workers = work.serve(&worker).unwrap();
    until(|| !work.dead_letters(1).unwrap().is_empty());
    let letter = work.dead_letters(1).unwrap().remove(0);
    assert_eq!(
        &*letter.why,
        "the request failed: bank.Echo, version 1, is not known here"
    );
    // Nothing else of this process stands in the way of a queue's name.
    assert!(node.durable::<Deposit>("a.b *").is_ok());
    drop(node.find::<Call<Deposit, ()>>("x"));
}
