//! Asking and sending, between nodes.

use crate::bank::{Account, Dangerous, Deposit, Echo, Log, Sleep, TimeLeft, Wait};
use crate::common::{Gate, until, watched};
use crate::server::Server;
use pirn::thread;
use pirn_actor::address::Ask;
use pirn_actor::error::Refusal;
use pirn_actor::{self as actor, AskError};
use pirn_nats::{Call, Node, Remote, wire};
use serde::{Deserialize, Serialize};
use std::sync::mpsc;
use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
const LONG: Duration = Duration::from_secs(60);

/// Serves an account on one node, and returns it as another node sees it.
fn account(server: &Server) -> (Node, actor::Ref<Account>, Remote<Account>) {
    let (here, there) = (server.node("here"), server.node("there"));
    let account = actor::spawn(Account::with(100));
    here.register("account.7", &account)
        .unwrap()
        .accepts::<Deposit>()
        .accepts::<Wait>()
        .accepts::<TimeLeft>()
        .accepts::<Sleep>()
        .accepts::<Echo>();
    (here, account, there.find("account.7"))
}

#[watched]
fn an_actor_on_another_node_answers() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, remote) = account(&server);
    assert_eq!(remote.ask(Deposit(5)), Ok(105));
    remote.send(Deposit(5)).unwrap();
    assert_eq!(remote.ask_timeout(Deposit(0), LONG), Ok(110));
    let (three, four) = (remote.ask_later(Deposit(3)), remote.ask_later(Deposit(4)));
    assert_eq!(three.unwrap().recv(), Ok(113));
    assert_eq!(pirn::block_on(four.unwrap()), Ok(117));
    let from_a_virtual_thread = thread::spawn(move || remote.ask(Deposit(1)));
    assert_eq!(from_a_virtual_thread.join().unwrap(), Ok(118));
    assert_eq!(local.ask(Deposit(0)), Ok(118));
}

#[watched]
fn a_function_does_not_care_where_the_actor_is() {
    fn pay(to: &impl Ask<Deposit, Reply = i64>) -> i64 {
        to.send(Deposit(1)).unwrap();
        to.ask(Deposit(1)).unwrap()
    }
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, remote) = account(&server);
    assert_eq!((pay(&local), pay(&remote)), (102, 104));
}

#[watched]
fn nobody_is_unreachable_at_once() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node_with("a", Node::builder().patience(LONG * 60));
    let nobody: Remote<Account> = node.find("nobody");
    assert_eq!(nobody.ask(Deposit(1)), Err(AskError::Unreachable));
    let group: Remote<Account> = node.group("nobody");
    assert_eq!(group.ask(Deposit(1)), Err(AskError::Unreachable));
    assert_eq!(nobody.monitor().err(), Some(AskError::Unreachable));
    nobody.send(Deposit(1)).unwrap(); // lost
}

#[watched]
fn an_ask_that_is_late_times_out_and_its_request_is_skipped() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, remote) = account(&server);
    let gate = local.run(|account| account.gate.clone()).unwrap();
    let waits = remote.ask_later(Wait).unwrap();
    let tenth = SECOND / 10;
    assert_eq!(
        remote.ask_timeout(Deposit(5), tenth),
        Err(AskError::TimedOut)
    );
    // The other node's deadline is later by the time that the request travelled.
    thread::sleep(SECOND / 2);
    gate.open();
    assert_eq!(waits.recv(), Ok(()));
    assert_eq!(remote.ask(Deposit(1)), Ok(101));
}

#[watched]
fn an_ask_without_a_time_limit_ends_when_the_nodes_patience_does() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, _) = account(&server);
    let hasty = server.node_with("hasty", Node::builder().patience(SECOND / 10));
    let remote: Remote<Account> = hasty.find("account.7");
    assert_eq!(remote.ask(Wait), Err(AskError::TimedOut));
    assert_eq!(
        remote.ask_later(Wait).unwrap().recv(),
        Err(AskError::TimedOut)
    );
    local
        .run_detached(|_| ())
        .unwrap_or_else(|_| panic!("it is open"));
    local.kill();
}

#[watched]
fn the_handler_runs_under_the_askers_deadline() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, _local, remote) = account(&server);
    let left = remote.ask_timeout(TimeLeft, LONG).unwrap().unwrap();
    assert!(
        left <= LONG.as_millis() && left > LONG.as_millis() / 2,
        "{left}"
    );
    // A handler on this node that asks one on another hands its own deadline on.
    let between = actor::function(move |()| remote.ask(TimeLeft).unwrap().unwrap());
    let left = between.ask_timeout((), LONG / 4).unwrap();
    assert!(left <= (LONG / 4).as_millis(), "{left}");
}

#[watched]
fn a_panic_fails_the_request_with_its_text_and_then_the_name_is_free() {
    let Some(server) = Server::start() else {
        return;
    };
    let (node, _local, remote) = account(&server);
    let Err(AskError::Failed(failure)) = remote.ask(Deposit(13)) else {
        panic!("the handler has panicked")
    };
    assert!(failure.to_string().contains("bad luck"), "{failure}");
    until(|| node.holder("account.7").unwrap().is_none());
    assert_eq!(remote.ask(Deposit(1)), Err(AskError::Unreachable));
}

#[watched]
fn requests_behind_the_end_of_an_actor_are_gone() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, remote) = account(&server);
    let gate = local.run(|account| account.gate.clone()).unwrap();
    let current = remote.ask_later(Wait).unwrap();
    let behind = remote.ask_later(Deposit(1)).unwrap();
    until(|| local.len() == 1);
    local.stop();
    gate.open();
    assert_eq!(current.recv(), Ok(()));
    assert_eq!(behind.recv(), Err(AskError::Gone));
}

#[watched]
fn a_type_that_is_not_registered_is_refused_by_name_and_never_decoded() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, _local, remote) = account(&server);
    let Err(AskError::Failed(failure)) = remote.ask(Dangerous) else {
        panic!("it is not accepted")
    };
    assert_eq!(failure.to_string(), "bank.Dangerous is not accepted here");
    assert_eq!(remote.ask(Deposit(0)), Ok(100));
}

#[watched]
fn a_type_whose_reading_panics_fails_the_request_alone() {
    let Some(server) = Server::start() else {
        return;
    };
    let (here, there) = (server.node("here"), server.node("there"));
    let account = actor::spawn(Account::with(1));
    here.register("a", &account)
        .unwrap()
        .accepts::<Dangerous>()
        .accepts::<Deposit>();
    let remote: Remote<Account> = there.find("a");
    let Err(AskError::Failed(failure)) = remote.ask(Dangerous) else {
        panic!("it cannot be read")
    };
    assert!(failure.to_string().contains("it was decoded"), "{failure}");
    assert_eq!(remote.ask(Deposit(1)), Ok(2));
}

#[watched]
fn versions_are_known_or_refused() {
    #[derive(Serialize, Deserialize)]
    struct New(u32);
    wire!(New, "test.Version", 2..=3);
    #[derive(Serialize, Deserialize)]
    struct Old(u32);
    wire!(Old, "test.Version", 1..=1);
    #[derive(Serialize, Deserialize)]
    struct Middle(u32);
    wire!(Middle, "test.Version", 1..=2);

    let Some(server) = Server::start() else {
        return;
    };
    let (here, there) = (server.node("here"), server.node("there"));
    let new = actor::function(|New(n)| n);
    here.register("new", &new).unwrap().accepts::<New>();
    assert_eq!(there.find::<Call<Middle, u32>>("new").ask(Middle(2)), Ok(2));
    assert_eq!(there.find::<Call<New, u32>>("new").ask(New(3)), Ok(3));
    let Err(AskError::Failed(failure)) = there.find::<Call<Old, u32>>("new").ask(Old(1)) else {
        panic!("it is too old")
    };
    let text = "test.Version is known here in the versions 2..=3, not in 1";
    assert_eq!(failure.to_string(), text);
}

#[watched]
fn an_answer_of_another_type_is_a_failure() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, _local, remote) = account(&server);
    let mistaken: Remote<Call<Deposit, String>> = {
        let node = server.node("mistaken");
        node.find(remote.name())
    };
    let Err(AskError::Failed(failure)) = mistaken.ask(Deposit(5)) else {
        panic!("a number is no text")
    };
    assert!(
        failure.to_string().contains("String cannot be read"),
        "{failure}"
    );
}

#[watched]
fn messages_of_one_sender_are_handled_in_order() {
    let Some(server) = Server::start() else {
        return;
    };
    let (here, there) = (server.node("here"), server.node("there"));
    let (tell, told) = mpsc::channel();
    let log = actor::spawn(Log(tell));
    here.register("log", &log).unwrap().accepts::<Deposit>();
    let remote: Remote<Log> = there.find("log");
    let sender = thread::spawn(move || {
        for n in 0..3000 {
            if n % 100 == 99 {
                remote.ask(Deposit(n)).unwrap();
            } else {
                remote.send(Deposit(n)).unwrap();
            }
        }
    });
    assert!((0..3000).all(|n| told.recv() == Ok(n)));
    sender.join().unwrap();
}

#[watched]
fn a_thousand_ask_at_once() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, remote) = account(&server);
    let askers: Vec<_> = (0..1000)
        .map(|_| {
            let remote = remote.clone();
            thread::spawn(move || remote.ask(Deposit(1)).unwrap())
        })
        .collect();
    askers
        .into_iter()
        .for_each(|asker| assert!(asker.join().unwrap() > 100));
    assert_eq!(local.ask(Deposit(0)), Ok(1100));
}

#[watched]
fn what_is_too_large_comes_back_with_the_numbers() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, _local, remote) = account(&server);
    let large = Echo("x".repeat(1024 * 1024));
    let error = remote.send(large.clone()).unwrap_err();
    let Refusal::Failed(failure) = error.refusal() else {
        panic!("{error}")
    };
    let text = failure.to_string();
    assert!(
        text.starts_with("the message has 10") && text.ends_with("takes 1048576"),
        "{text}"
    );
    assert_eq!(error.into_message(), large);
    assert!(matches!(remote.ask(large), Err(AskError::Failed(_))));
    // The answer alone may be too large, too.
    let Err(AskError::Failed(failure)) = remote.ask(Echo("q".repeat(600_000))) else {
        panic!("it is too large")
    };
    let text = failure.to_string();
    let so = "the answer was not sent: the message has 1200";
    assert!(text.starts_with(so), "{text}");
    assert_eq!(remote.ask(Echo("q".repeat(1000))), Ok("\"".repeat(1000)));
}

#[watched]
fn an_interrupted_ask_ends() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, remote) = account(&server);
    let gate = local.run(|account| account.gate.clone()).unwrap();
    let asker = thread::spawn(move || remote.ask(Wait));
    asker.thread().interrupt();
    assert_eq!(asker.join().unwrap(), Err(AskError::Interrupted));
    gate.open();
}

#[watched]
fn any_text_is_a_name() {
    let Some(server) = Server::start() else {
        return;
    };
    let (here, there) = (server.node("here"), server.node("there"));
    for (n, name) in ["", "a b", "*", ">", ".", "ä.ö", "a..b", "=", "$KV"]
        .iter()
        .enumerate()
    {
        let n = i64::try_from(n).unwrap();
        let account = actor::spawn(Account::with(n));
        here.register(name, &account).unwrap().accepts::<Deposit>();
        let remote: Remote<Account> = there.find(name);
        assert_eq!(remote.ask(Deposit(100)), Ok(100 + n), "{name:?}");
    }
}

#[watched]
fn systems_do_not_hear_each_other() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, _local, remote) = account(&server);
    let other = Node::connect(&server.url(), "other").unwrap();
    let name = remote.name();
    assert_eq!(
        other.find::<Account>(name).ask(Deposit(1)),
        Err(AskError::Unreachable)
    );
    let error = Node::connect(&server.url(), "not.one").unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("\"not.one\" cannot name a system"),
        "{error}"
    );
}

#[watched]
fn asks_of_a_node_that_is_closed_are_gone_and_later_ones_refused() {
    let Some(server) = Server::start() else {
        return;
    };
    let (_node, local, remote) = account(&server);
    let gate = local.run(|account| account.gate.clone()).unwrap();
    let other = server.node("other");
    let to_be_closed: Remote<Account> = other.find(remote.name());
    let waits = to_be_closed.ask_later(Wait).unwrap();
    other.close();
    assert_eq!(waits.recv(), Err(AskError::Gone));
    assert_eq!(to_be_closed.ask(Deposit(1)), Err(AskError::Gone));
    let error = to_be_closed.send(Deposit(1)).unwrap_err();
    assert_eq!(error.refusal(), &Refusal::Closed);
    gate.open();
}

#[watched]
fn a_mailbox_that_is_full_holds_the_senders_back_and_loses_nothing() {
    let Some(server) = Server::start() else {
        return;
    };
    let here = server.node("here");
    let there = server.node_with("there", Node::builder().patience(LONG * 60));
    let gate = Gate::new();
    let (blocked, mut sum) = (gate.clone(), 0);
    let slow = actor::Builder::new()
        .capacity(1)
        .function(move |Deposit(n)| {
            blocked.wait();
            sum += n;
            sum
        });
    here.join("slow", &slow).unwrap().accepts::<Deposit>();
    let remote: Remote<Call<Deposit, i64>> = there.group("slow");
    (0..500).for_each(|_| remote.send(Deposit(1)).unwrap());
    let before = Instant::now();
    assert_eq!(
        remote.ask_timeout(Deposit(1), SECOND / 20),
        Err(AskError::TimedOut)
    );
    assert!(before.elapsed() >= SECOND / 20);
    // It waits behind the others, and its asker has given up when its turn comes.
    thread::sleep(SECOND / 2);
    gate.open();
    assert_eq!(remote.ask(Deposit(0)), Ok(500));
    assert_eq!(here.dropped(), 0);
}
