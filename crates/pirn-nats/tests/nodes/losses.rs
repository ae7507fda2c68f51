//! Nodes, servers and connections that are lost.

use crate::bank::{Account, Deposit, Log, Sleep};
use crate::children::Process;
use crate::common::{Gate, until, watched};
use crate::forwarder::Forwarder;
use crate::server::{LEASE, Server};
use pirn::thread;
use pirn_actor::{self as actor, AskError, Exit};
use pirn_nats::{Call, Node, Remote};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(60);

#[watched]
fn nodes_hear_of_each_other() {
    let Some(server) = Server::start() else {
        return;
    };
    let nodes = [server.node("a"), server.node("b")];
    let names = |node: &Node| {
        node.nodes()
            .iter()
            .map(|n| n.name.to_string())
            .collect::<Vec<_>>()
    };
    until(|| nodes.iter().all(|node| names(node) == ["a", "b"]));
    nodes[1].close();
    until(|| names(&nodes[0]) == ["a"]);
}

#[watched]
fn a_monitor_tells_how_an_actor_elsewhere_has_ended() {
    let Some(server) = Server::start() else {
        return;
    };
    let (here, there) = (server.node("here"), server.node("there"));
    let spawn = |name: &str| {
        let account = actor::spawn(Account::with(1));
        here.register(name, &account).unwrap().accepts::<Deposit>();
        let remote: Remote<Account> = there.find(name);
        (account, remote.monitor().unwrap(), remote)
    };
    let (stopped, failed, killed) = (spawn("stopped"), spawn("failed"), spawn("killed"));
    stopped.0.stop();
    killed.0.kill();
    drop(failed.2.ask(Deposit(13)));
    assert_eq!(stopped.1.recv().unwrap(), Exit::Stopped);
    assert_eq!(killed.1.recv().unwrap(), Exit::Killed);
    let Exit::Failed(failure) = failed.1.recv().unwrap() else {
        panic!("it has panicked")
    };
    assert!(failure.to_string().contains("bad luck"), "{failure}");
}

#[watched]
fn monitors_of_a_node_that_is_closed_tell_that_it_is_lost() {
    let Some(server) = Server::start() else {
        return;
    };
    let (here, there) = (server.node("here"), server.node("there"));
    let account = actor::spawn(Account::with(1));
    here.register("a", &account).unwrap().accepts::<Deposit>();
    let monitor = there.find::<Account>("a").monitor().unwrap();
    here.close();
    assert_eq!(monitor.recv().unwrap(), Exit::NodeLost);
    assert_eq!(account.ask(Deposit(1)), Ok(2));
}

#[watched]
fn a_process_that_is_killed_or_stands_still_is_lost() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.hasty_node("watcher");
    for signal in [libc::SIGKILL, libc::SIGSTOP] {
        let mut child = Process::start("account", &server.url());
        assert!(child.line().starts_with("ready"));
        let remote: Remote<Account> = node.find("account");
        let monitor = remote.monitor().unwrap();
        let asked = remote.ask_later(Sleep(LONG)).unwrap();
        child.signal(signal);
        assert_eq!(monitor.recv().unwrap(), Exit::NodeLost);
        drop(asked);
        drop(child);
        until(|| node.holder("account").unwrap().is_none());
    }
}

#[watched]
fn an_ask_of_a_process_that_is_killed_ends() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node_with("asker", Node::builder().patience(SECOND));
    let mut child = Process::start("account", &server.url());
    child.line();
    let remote: Remote<Account> = node.find("account");
    let asked = remote.ask_later(Sleep(LONG)).unwrap();
    // Behind the request: when this is answered, that has been given to the actor.
    let _monitor = remote.monitor().unwrap();
    child.signal(libc::SIGKILL);
    assert_eq!(asked.recv(), Err(AskError::TimedOut));
}

#[watched]
fn askers_that_are_killed_leave_nothing_behind() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("asked");
    let (tell, told) = mpsc::channel();
    let asked = actor::function(move |Deposit(n)| tell.send(n).unwrap_or(()));
    node.register("asked", &asked).unwrap().accepts::<Deposit>();
    for _ in 0..3 {
        let mut child = Process::start("asker", &server.url());
        child.line();
        told.recv().unwrap();
        child.signal(libc::SIGKILL);
    }
    let remote: Remote<Call<Deposit, ()>> = node.find("asked");
    assert_eq!(remote.ask(Deposit(0)), Ok(()));
}

/// Asks until there is an answer.
fn reach(remote: &Remote<Account>, answer: i64) {
    until(|| remote.ask_timeout(Deposit(0), SECOND) == Ok(answer));
}

#[watched]
fn a_server_that_is_started_again_finds_its_nodes_and_names() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let builder = || Node::builder().lease(LONG);
    let connect = |name: &str| {
        builder()
            .name(name)
            .connect(&forwarder.url(), "long")
            .unwrap()
    };
    let (here, there) = (connect("here"), connect("there"));
    let account = actor::spawn(Account::with(1));
    let held = here
        .register("account", &account)
        .unwrap()
        .accepts::<Deposit>()
        .serve();
    let remote: Remote<Account> = there.find("account");
    reach(&remote, 1);
    let server = server.restart();
    forwarder.aim(server.port());
    reach(&remote, 1);
    assert!(held.is_held());
    let other = builder()
        .name("other")
        .connect(&forwarder.url(), "long")
        .unwrap();
    assert!(other.register("account", &account).is_err());
}

#[watched]
fn a_server_that_stands_still_times_out_and_goes_on() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let account = actor::spawn(Account::with(1));
    node.join("accounts", &account)
        .unwrap()
        .accepts::<Deposit>();
    let remote: Remote<Account> = node.group("accounts");
    reach(&remote, 1);
    server.signal(libc::SIGSTOP);
    // A moment later it stands still.
    until(|| remote.ask_timeout(Deposit(0), SECOND) == Err(AskError::TimedOut));
    server.signal(libc::SIGCONT);
    reach(&remote, 1);
}

#[watched]
fn a_cut_connection_is_mended_and_asks_meanwhile_end() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let there = Node::connect(&forwarder.url(), "test").unwrap();
    let here = server.node("here");
    let account = actor::spawn(Account::with(1));
    here.join("accounts", &account)
        .unwrap()
        .accepts::<Deposit>();
    let remote: Remote<Account> = there.group("accounts");
    for _ in 0..5 {
        reach(&remote, 1);
        let asked: Vec<_> = (0..50)
            .map(|_| remote.ask_later(Deposit(0)).unwrap())
            .collect();
        forwarder.cut();
        until(|| !there.is_connected());
        assert_eq!(
            remote.ask_timeout(Deposit(0), SECOND / 10),
            Err(AskError::TimedOut)
        );
        forwarder.mend();
        let end = Instant::now() + SECOND;
        for reply in asked {
            let answer = reply.recv_deadline(end);
            assert!(
                matches!(answer, Ok(1) | Err(AskError::TimedOut)),
                "{answer:?}"
            );
        }
    }
}

#[watched]
fn order_is_kept_on_either_side_of_a_cut() {
    let Some(server) = Server::start() else {
        return;
    };
    let forwarder = Forwarder::to(server.port());
    let there = Node::connect(&forwarder.url(), "test").unwrap();
    let here = server.node("here");
    let (tell, told) = mpsc::channel();
    let log = actor::spawn(Log(tell));
    here.join("log", &log).unwrap().accepts::<Deposit>();
    let remote: Remote<Log> = there.group("log");
    let sender = thread::spawn(move || {
        (0..2000).for_each(|n| remote.send(Deposit(n)).unwrap());
        until(|| remote.ask_timeout(Deposit(2000), SECOND).is_ok());
    });
    let first = told.recv().unwrap();
    forwarder.cut();
    until(|| !there.is_connected());
    forwarder.mend();
    sender.join().unwrap();
    // Some may be lost. None comes twice, and none before an earlier one.
    let numbers: Vec<_> = std::iter::once(first).chain(told.try_iter()).collect();
    assert!(
        numbers
            .windows(2)
            .all(|pair| pair[0] < pair[1] || pair == [2000, 2000])
    );
    assert_eq!(numbers.last(), Some(&2000));
}

#[watched]
fn a_slow_actor_costs_messages_and_not_memory_and_they_are_counted() {
    let Some(server) = Server::start() else {
        return;
    };
    let here = server.node_with("here", Node::builder().queue(100));
    let there = server.node("there");
    let (gate, (tell, told)) = (Gate::new(), mpsc::channel());
    let blocked = gate.clone();
    let slow = actor::Builder::new()
        .capacity(10)
        .function(move |Deposit(n)| {
            blocked.wait();
            let _ = tell.send(n);
        });
    here.register("slow", &slow).unwrap().accepts::<Deposit>();
    let remote: Remote<Call<Deposit, ()>> = there.find("slow");
    let sent = 2000;
    (0..sent).for_each(|n| remote.send(Deposit(n)).unwrap());
    // Others of the node are not held up.
    let quick = actor::function(|Deposit(n)| n);
    here.register("quick", &quick).unwrap().accepts::<Deposit>();
    assert_eq!(
        there.find::<Call<Deposit, i64>>("quick").ask(Deposit(5)),
        Ok(5)
    );
    until(|| here.dropped() > 0);
    assert_eq!(remote.ask(Deposit(sent)), Err(AskError::Full));
    gate.open();
    until(|| remote.ask_timeout(Deposit(sent), SECOND).is_ok());
    let numbers: Vec<_> = told.try_iter().collect();
    assert!(numbers.len() < 500, "{} were kept", numbers.len());
    assert!(
        numbers.windows(2).all(|pair| pair[0] <= pair[1]),
        "{numbers:?}"
    );
}

#[watched]
fn a_cluster_goes_on_without_one_of_its_servers() {
    let Some(servers) = Server::cluster() else {
        return;
    };
    let urls = servers.each_ref().map(Server::url).join(",");
    let connect = |name: &str, url: &str| {
        let builder = Node::builder().name(name).lease(LEASE * 10).replicas(3);
        builder.connect(url, "cluster").unwrap()
    };
    let (here, there) = (connect("here", &servers[0].url()), connect("there", &urls));
    let account = actor::spawn(Account::with(1));
    // The servers find each other, and elect a leader, a moment after they have been started.
    let held = loop {
        match here.register("account", &account) {
            Ok(registration) => break registration.accepts::<Deposit>().serve(),
            Err(error) => drop(error),
        }
        thread::sleep(SECOND / 10);
    };
    let remote: Remote<Account> = there.find("account");
    reach(&remote, 1);
    servers[0].kill();
    reach(&remote, 1);
    until(|| matches!(there.holder("account"), Ok(Some(_))));
    assert!(held.is_held());
    assert!(there.register("account", &account).is_err());
}

#[watched]
fn a_server_of_a_cluster_that_stands_still_is_left() {
    let Some(servers) = Server::cluster() else {
        return;
    };
    let urls = servers.each_ref().map(Server::url).join(",");
    let node = Node::connect(&urls, "cluster").unwrap();
    let account = actor::spawn(Account::with(1));
    node.join("accounts", &account)
        .unwrap()
        .accepts::<Deposit>();
    let remote: Remote<Account> = node.group("accounts");
    reach(&remote, 1);
    // Whichever it is connected to is among these two.
    servers[0].signal(libc::SIGSTOP);
    reach(&remote, 1);
    servers[0].signal(libc::SIGCONT);
    servers[1].signal(libc::SIGSTOP);
    reach(&remote, 1);
    servers[1].signal(libc::SIGCONT);
}
