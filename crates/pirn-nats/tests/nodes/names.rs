//! Names: one holder each, whatever happens.

use crate::bank::{Account, Deposit, Sleep};
use crate::children::Process;
use crate::common::{until, watched};
use crate::forwarder::Forwarder;
use crate::server::{LEASE, Server};
use pirn::thread;
use pirn_actor::{self as actor, AskError, Exit};
use pirn_nats::{Node, NodeError, Remote};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

fn serve(node: &Node, balance: i64) -> Result<pirn_nats::Serving, NodeError> {
    let account = actor::spawn(Account::with(balance));
    let registration = node.register("account", &account)?;
    Ok(registration.accepts::<Deposit>().serve())
}

#[watched]
fn a_name_has_one_holder_and_is_free_when_that_gives_it_back() {
    let Some(server) = Server::start() else {
        return;
    };
    let (a, b) = (server.hasty_node("a"), server.hasty_node("b"));
    let first = serve(&a, 1).unwrap();
    for node in [&a, &b] {
        let taken = NodeError::Taken {
            name: "account".into(),
            by: "a".into(),
        };
        assert_eq!(serve(node, 2).unwrap_err(), taken);
    }
    assert_eq!(b.holder("account").unwrap().unwrap().node, "a");
    assert!(first.is_held());
    first.release();
    assert!(!first.is_held());
    let second = serve(&b, 2).unwrap();
    assert!(second.fence() > first.fence());
    let remote: Remote<Account> = a.find("account");
    assert_eq!(remote.ask(Deposit(0)), Ok(2));
    first.release(); // once more: the new holder keeps the name
    assert!(second.is_held());
    assert_eq!(remote.ask(Deposit(0)), Ok(2));
}

#[watched]
fn a_name_is_free_when_its_actor_ends_or_its_node_is_closed() {
    let Some(server) = Server::start() else {
        return;
    };
    let (a, b) = (server.hasty_node("a"), server.hasty_node("b"));
    let account = actor::spawn(Account::with(1));
    a.register("account", &account)
        .unwrap()
        .accepts::<Deposit>();
    account.stop();
    until(|| b.holder("account").unwrap().is_none());
    let held = serve(&a, 1).unwrap();
    a.close();
    assert!(!held.is_held());
    serve(&b, 2).unwrap();
    assert_eq!(serve(&a, 1).unwrap_err(), NodeError::Closed);
}

#[watched]
fn one_of_many_gets_a_name() {
    let Some(server) = Server::start() else {
        return;
    };
    let nodes: Vec<_> = (0..4).map(|n| server.hasty_node(&n.to_string())).collect();
    let takers = nodes.iter().cycle().take(20).cloned();
    let takers: Vec<_> = takers
        .map(|node| thread::spawn(move || serve(&node, 1)))
        .collect();
    let taken: Vec<_> = takers
        .into_iter()
        .map(|taker| taker.join().unwrap())
        .collect();
    assert_eq!(
        taken.iter().filter(|taken| taken.is_ok()).count(),
        1,
        "{taken:?}"
    );
}

#[watched]
fn a_name_is_kept_for_longer_than_a_lease() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.hasty_node("a");
    let held = serve(&node, 1).unwrap();
    thread::sleep(LEASE * 2);
    assert!(held.is_held());
    assert!(matches!(serve(&node, 2), Err(NodeError::Taken { .. })));
}

#[watched]
fn the_name_of_a_killed_process_is_free_after_the_lease_and_not_before() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut child = Process::start("account", &server.url());
    let fence: u64 = child
        .line()
        .strip_prefix("ready ")
        .unwrap()
        .parse()
        .unwrap();
    let node = server.hasty_node("next");
    let remote: Remote<Account> = node.find("account");
    assert_eq!(remote.ask(Deposit(1)), Ok(101));
    let killed = Instant::now();
    child.signal(libc::SIGKILL);
    // A request that the server gives to the process before it knows of its end is not answered.
    let soon = Duration::from_millis(100);
    until(|| remote.ask_timeout(Deposit(1), soon) == Err(AskError::Unreachable));
    // Without a pause, so that the lease also ends between a refusal and the look at its holder.
    let next = loop {
        match serve(&node, 7) {
            Ok(next) => break next,
            Err(NodeError::Taken { by, .. }) => assert_eq!(&*by, "child"),
            Err(error) => panic!("{error}"),
        }
    };
    // It may have been kept up to three tenths of a lease before.
    assert!(killed.elapsed() >= LEASE * 6 / 10, "{:?}", killed.elapsed());
    assert!(next.fence().unwrap() > fence);
    assert_eq!(remote.ask(Deposit(0)), Ok(7));
}

#[watched]
fn a_process_that_was_stopped_for_too_long_kills_its_actor_and_handles_nothing_more() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut child = Process::start("log", &server.url());
    assert_eq!(child.line(), "ready");
    let node = server.hasty_node("next");
    let remote: Remote<Account> = node.find("account");
    remote.send(Deposit(1)).unwrap();
    assert_eq!(child.line(), "got 1");
    child.stop();
    let _next = loop {
        // These wait in the stopped process's socket.
        remote.send(Deposit(2)).unwrap();
        match serve(&node, 7) {
            Ok(next) => break next,
            Err(_) => thread::sleep(Duration::from_millis(100)),
        }
    };
    child.signal(libc::SIGCONT);
    assert_eq!(child.line(), "killed");
    assert_eq!(remote.ask(Deposit(0)), Ok(7));
}

#[watched]
fn a_process_that_was_stopped_for_too_long_interrupts_its_handler() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut child = Process::start("account", &server.url());
    child.line();
    let node = server.hasty_node("watcher");
    let remote: Remote<Account> = node.find("account");
    let current = remote.ask_later(Sleep(Duration::from_secs(3600))).unwrap();
    let _monitor = remote.monitor().unwrap(); // answered when the request has been given
    child.stop();
    until(|| node.holder("account").unwrap().is_none());
    child.signal(libc::SIGCONT);
    assert_eq!(child.line(), "killed");
    assert_eq!(current.recv(), Ok(true));
}

#[watched]
fn a_holder_without_a_connection_ends_its_actor_before_the_name_can_be_anothers() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let builder = Node::builder().name("cut").lease(LEASE);
    let cut = builder.connect(&forwarder.url(), "test").unwrap();
    let account = actor::spawn(Account::with(1));
    let held = cut
        .register("account", &account)
        .unwrap()
        .accepts::<Deposit>()
        .serve();
    let node = server.hasty_node("next");
    forwarder.cut();
    let next = loop {
        let was_over = account.exit().is_some() || !held.is_held();
        match serve(&node, 7) {
            Ok(next) => break (was_over || !held.is_held(), next),
            Err(_) => thread::sleep(Duration::from_millis(20)),
        }
    };
    assert!(next.0, "two held the name");
    assert_eq!(account.join(), Exit::Killed);
    forwarder.mend();
    until(|| cut.is_connected());
    let remote: Remote<Account> = cut.find("account");
    until(|| remote.ask_timeout(Deposit(0), LEASE) == Ok(7));
}

#[watched]
fn a_name_that_is_held_is_served_again_by_another_actor() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let connect = |name: &str| {
        let builder = Node::builder().name(name).lease(LEASE);
        builder.connect(&forwarder.url(), "test").unwrap()
    };
    let (node, other) = (connect("holds"), connect("asks"));
    let made = Arc::new(Mutex::new(Vec::new()));
    let make = {
        let made = Arc::clone(&made);
        move || {
            let account = actor::spawn(Account::with(7));
            made.lock().unwrap().push(account.clone());
            account
        }
    };
    let holding = node
        .hold("account", make, |r| r.accepts::<Deposit>())
        .unwrap();
    let remote: Remote<Account> = other.find("account");
    let last = || made.lock().unwrap().last().cloned();
    let reach = || until(|| remote.ask_timeout(Deposit(0), LEASE) == Ok(7));
    reach();
    let first = last().unwrap();

    // One that stands by takes the name when it is free, and gives it back.
    let next = other.hold(
        "account",
        || actor::spawn(Account::with(8)),
        |r| r.accepts::<Deposit>(),
    );
    let next = next.unwrap();
    assert!(holding.is_held() && !next.is_held());
    first.stop();
    until(|| holding.is_held() || next.is_held());
    next.release();
    reach();
    assert!(holding.is_held() && !next.is_held());

    // The lease is lost with the server's store.
    let second = last().unwrap();
    let server = server.restart_empty();
    forwarder.aim(server.port());
    assert_eq!(second.join(), Exit::Killed);
    reach();
    assert!(holding.is_held() && holding.fence().is_some());

    holding.release();
    assert!(!holding.is_held());
    assert_eq!(other.holder("account"), Ok(None));
    let third = last().unwrap();
    made.lock().unwrap().clear();
    let monitor = third.monitor();
    drop(third);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
}

#[watched]
fn a_short_cut_does_not_cost_the_name() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let builder = Node::builder().name("cut").lease(LEASE * 2);
    let cut = builder.connect(&forwarder.url(), "long").unwrap();
    let held = serve(&cut, 1).unwrap();
    for _ in 0..3 {
        forwarder.cut();
        until(|| !cut.is_connected());
        forwarder.mend();
        until(|| cut.is_connected());
    }
    let remote: Remote<Account> = cut.find("account");
    until(|| remote.ask_timeout(Deposit(0), Duration::from_secs(1)) == Ok(1));
    thread::sleep(LEASE * 2);
    assert!(held.is_held());
}

#[watched]
fn leases_of_another_length_are_an_error() {
    let Some(server) = Server::start() else {
        return;
    };
    serve(&server.hasty_node("a"), 1).unwrap();
    let other = Node::builder()
        .lease(LEASE * 2)
        .connect(&server.url(), "test")
        .unwrap();
    let error = serve(&other, 1).unwrap_err().to_string();
    assert!(
        error.contains("the leases of this system last 4s, not 8s"),
        "{error}"
    );
}
