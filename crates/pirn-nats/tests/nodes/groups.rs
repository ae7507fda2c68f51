//! Groups and topics.

use crate::bank::{Account, Deposit, Log};
use crate::common::{until, watched};
use crate::server::Server;
use pirn_actor::{self as actor, AskError};
use pirn_nats::{Call, Remote};
use std::sync::mpsc;

#[watched]
fn each_ask_of_a_group_goes_to_one_member() {
    let Some(server) = Server::start() else {
        return;
    };
    let nodes = [server.node("a"), server.node("b")];
    let members = nodes.each_ref().map(|node| {
        let account = actor::spawn(Account::with(0));
        node.join("pricing", &account).unwrap().accepts::<Deposit>();
        account
    });
    let group: Remote<Account> = server.node("c").group("pricing");
    for _ in 0..200 {
        group.ask(Deposit(1)).unwrap();
    }
    let counts = members
        .each_ref()
        .map(|member| member.ask(Deposit(0)).unwrap());
    assert_eq!(counts[0] + counts[1], 200);
    assert!(counts.iter().all(|count| *count > 20), "{counts:?}");
    // A member that ends leaves the group, and the others do its work.
    members[0].stop();
    members[0].join();
    until(|| group.ask(Deposit(1)).is_ok());
    for _ in 0..50 {
        group.ask(Deposit(1)).unwrap();
    }
    members[1].stop();
    members[1].join();
    until(|| group.ask(Deposit(1)) == Err(AskError::Unreachable));
}

#[watched]
fn a_member_that_is_released_goes_on_for_its_own_process() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let double = actor::function(|Deposit(n)| n * 2);
    let serving = node
        .join("double", &double)
        .unwrap()
        .accepts::<Deposit>()
        .serve();
    let group: Remote<Call<Deposit, i64>> = node.group("double");
    assert_eq!((group.ask(Deposit(2)), serving.fence()), (Ok(4), None));
    serving.release();
    until(|| group.ask(Deposit(2)) == Err(AskError::Unreachable));
    assert_eq!(double.ask(Deposit(2)), Ok(4));
}

#[watched]
fn what_is_published_goes_to_all_who_are_subscribed() {
    let Some(server) = Server::start() else {
        return;
    };
    let (a, b) = (server.node("a"), server.node("b"));
    let (tell, told) = mpsc::channel();
    let logs = [(); 3].map(|()| actor::spawn(Log(tell.clone())));
    let here = a.topic::<Deposit>("prices");
    let first = [
        here.subscribe(&logs[0]).unwrap(),
        here.subscribe(&logs[1]).unwrap(),
    ];
    let _there = b.topic::<Deposit>("prices").subscribe(&logs[2]).unwrap();
    here.publish(Deposit(1)).unwrap();
    assert_eq!([(); 3].map(|()| told.recv().unwrap()), [1; 3]);
    drop(first);
    // What was dropped has perhaps not left yet: the others' answer in order.
    until(|| {
        here.publish(Deposit(2)).unwrap();
        told.recv().unwrap();
        told.recv_timeout(std::time::Duration::from_millis(100))
            .is_err()
    });
    logs[2].stop();
    logs[2].join();
    here.publish(Deposit(3)).unwrap();
    assert!(
        told.recv_timeout(std::time::Duration::from_millis(100))
            .is_err()
    );
}

#[watched]
fn what_a_topic_does_not_know_is_counted_and_not_delivered() {
    let Some(server) = Server::start() else {
        return;
    };
    let node = server.node("a");
    let (tell, told) = mpsc::channel();
    let log = actor::spawn(Log(tell));
    let _subscription = node.topic::<Deposit>("mixed").subscribe(&log).unwrap();
    node.topic::<crate::bank::Dangerous>("mixed")
        .publish(crate::bank::Dangerous)
        .unwrap();
    node.topic::<Deposit>("mixed").publish(Deposit(1)).unwrap();
    assert_eq!(told.recv(), Ok(1));
    assert_eq!(node.dropped(), 1);
}
