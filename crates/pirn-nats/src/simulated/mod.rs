//! What the page of this crate promises, under seeds: nodes whose links to the server are slow and
//! cut now and then, threads that pause, holders that come and go.
//!
//! Tests of the protocol, not of `async-nats`: the server is a part of the test.

mod server;

use crate::node::{Node, begin};
use crate::serve::Holding;
use crate::{Call, DurableOptions, Remote, wire};
use pirn::thread::sleep_interruptible;
use pirn_actor::{Address, AskError, Exit};
use pirn_testing::below;
use serde::{Deserialize, Serialize};
use server::{Server, Wire, nap};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

const LEASE: Duration = Duration::from_secs(10);
const PATIENCE: Duration = Duration::from_secs(30);
/// Milliseconds that a message takes at most, one way.
const LATENCY: u64 = 50;

#[derive(Serialize, Deserialize)]
struct Work {
    asker: u64,
    number: u64,
}
wire!(Work, "test.Work");

type Worker = Remote<Call<Work, u64>>;

fn nodes<const N: usize>(server: &Arc<Server>) -> [(Node, Arc<Wire>); N] {
    std::array::from_fn(|number| {
        let (link, wire) = server.link(number as u64);
        let name = format!("node-{number}").into();
        let node = begin(Box::new(link), "test", name, (PATIENCE, LEASE), 1).unwrap();
        (node, wire)
    })
}

/// Cuts links and heals them, until the test says that it is over; then all are whole.
fn cuts(wires: Vec<Arc<Wire>>, times: u64) -> thread::JoinHandle<()> {
    thread::spawn(move || {
        for _ in 0..times {
            nap(8000);
            let wire = &wires[below(wires.len() as u64) as usize];
            wire.cut();
            nap([500, 10_000, 30_000][below(3) as usize]);
            wire.heal();
        }
    })
}

/// An actor that checks that it is alone, and that its fencing number is not lower than one that
/// was used before.
struct Storage {
    at_work: AtomicBool,
    highest: AtomicU64,
    handled: Mutex<BTreeMap<(u64, u64), u64>>,
    last: Mutex<BTreeMap<u64, u64>>,
}

/// Holders of one name on three nodes, asked from all of them.
fn one_holder() {
    let server = Server::new(LEASE, LATENCY);
    let nodes = nodes::<3>(&server);
    let storage = Arc::new(Storage {
        at_work: AtomicBool::new(false),
        highest: AtomicU64::new(0),
        handled: Mutex::default(),
        last: Mutex::default(),
    });
    let holdings: Vec<Holding> = nodes
        .iter()
        .map(|(node, _)| {
            let storage = Arc::clone(&storage);
            // The fence is known when the actor is served, so it is told then.
            let fence = Arc::new(AtomicU64::new(0));
            let of_actor = Arc::new(Mutex::new(Arc::clone(&fence)));
            let next = Arc::clone(&of_actor);
            let make = move || {
                let fence = Arc::<AtomicU64>::default();
                *next.lock().unwrap() = Arc::clone(&fence);
                let storage = Arc::clone(&storage);
                pirn_actor::function(move |work: Work| {
                    let others = storage.at_work.swap(true, SeqCst);
                    assert!(!others, "two holders work at once");
                    let fence = fence.load(SeqCst);
                    let before = storage.highest.fetch_max(fence, SeqCst);
                    assert!(before <= fence, "an earlier holder works late");
                    let key = (work.asker, work.number);
                    let times = *storage
                        .handled
                        .lock()
                        .unwrap()
                        .entry(key)
                        .and_modify(|it| *it += 1)
                        .or_insert(1);
                    assert_eq!(times, 1, "handled twice");
                    let last = storage.last.lock().unwrap().insert(work.asker, work.number);
                    assert!(last < Some(work.number), "before an earlier one");
                    // Some take longer than a lease: a holder that has lost it is interrupted.
                    let longest = [500, 500, 500, 25_000][below(4) as usize];
                    let _ = sleep_interruptible(Duration::from_millis(below(longest)));
                    storage.at_work.store(false, SeqCst);
                    work.number
                })
            };
            let accepts = move |it: crate::Registration<Address<Work, u64>>| {
                let fence = Arc::clone(&of_actor.lock().unwrap());
                fence.store(it.fence().unwrap(), SeqCst);
                it.accepts::<Work>()
            };
            node.hold("storage", make, accepts).unwrap()
        })
        .collect();
    let cutter = cuts(nodes.iter().map(|it| Arc::clone(&it.1)).collect(), 4);
    let askers: Vec<_> = (0..3)
        .map(|asker| {
            let storage: Worker = nodes[asker as usize].0.find("storage");
            thread::spawn(move || {
                for number in 0..20 {
                    nap(3000);
                    let work = Work { asker, number };
                    if below(3) == 0 {
                        storage.send(work).unwrap(); // No deadline ends its handler.
                        continue;
                    }
                    let (begin, limit) = (Instant::now(), Duration::from_secs(4));
                    match storage.ask_timeout(work, limit) {
                        Ok(answer) => assert_eq!(answer, number),
                        Err(AskError::Unreachable | AskError::Gone | AskError::TimedOut) => {}
                        Err(error) => panic!("{error:?}"),
                    }
                    assert!(begin.elapsed() <= limit + Duration::from_secs(1));
                }
            })
        })
        .collect();
    askers.into_iter().for_each(|it| it.join().unwrap());
    cutter.join().unwrap();
    // The links are whole: one of the nodes holds it, after a lease at most.
    thread::sleep(2 * LEASE);
    assert_eq!(holdings.iter().filter(|it| it.is_held()).count(), 1);
    for (asker, (node, _)) in nodes.iter().enumerate() {
        let storage: Worker = node.find("storage");
        let asker = asker as u64;
        // Messages that were sent before may take some time.
        let answers = (100..110).map(|number| storage.ask(Work { asker, number }));
        assert!(answers.into_iter().any(|answer| answer.is_ok()));
    }
    // A node that is closed gives the name back.
    let [(first, _), ..] = &nodes;
    first.close();
    thread::sleep(LEASE / 5);
    let held = holdings.iter().filter(|it| it.is_held()).count();
    assert_eq!(held, 1, "the others stand by");
    drop(holdings);
    nodes.iter().for_each(|it| it.0.close());
    thread::sleep(2 * LEASE);
}

#[pirn_sim::test(seeds(0..10), pauses(3000, Duration::from_millis(50)))]
fn one_holder_for_each_name() {
    one_holder();
}

/// Asks over links that are cut: each ends, none is handled twice, and none before an earlier one.
#[pirn_sim::test(seeds(0..10), pauses(3000, Duration::from_secs(2)))]
fn every_ask_ends_and_nothing_comes_twice() {
    let server = Server::new(LEASE, LATENCY);
    let [(one, _), (other, wire)] = nodes::<2>(&server);
    let handled = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&handled);
    let actor = pirn_actor::Builder::new()
        .restarts(pirn_actor::Restarts::at_most(usize::MAX))
        .spawn(move || {
            let log = Arc::clone(&log);
            pirn_actor::Function::new(move |work: Work| {
                log.lock().unwrap().push((work.asker, work.number));
                let _ = sleep_interruptible(Duration::from_millis(below(200)));
                match work.number % 7 {
                    6 => std::panic::resume_unwind(Box::new("a bug")),
                    _ => work.number,
                }
            })
        })
        .unwrap();
    other.join("workers", &actor).unwrap().accepts::<Work>();
    let monitor = one.group::<Call<Work, u64>>("workers").monitor().unwrap();
    let cutter = cuts(vec![wire], 2);
    let askers: Vec<_> = (0..2)
        .map(|asker| {
            let workers: Worker = one.group("workers");
            thread::spawn(move || {
                let mut answered = Vec::new();
                for number in 0..12 {
                    nap(3000);
                    let (begin, limit) = (Instant::now(), Duration::from_millis(1 + below(9000)));
                    match workers.ask_timeout(Work { asker, number }, limit) {
                        Ok(answer) => {
                            assert_eq!(answer, number);
                            answered.push((asker, number));
                        }
                        Err(AskError::Failed(_)) => assert_eq!(number % 7, 6),
                        Err(AskError::TimedOut) => assert!(begin.elapsed() >= limit),
                        Err(error) => panic!("{error:?}"),
                    }
                    let pauses = Duration::from_secs(6); // A few, one after the other.
                    assert!(begin.elapsed() <= limit + pauses);
                }
                answered
            })
        })
        .collect();
    let answered = askers.into_iter().flat_map(|it| it.join().unwrap());
    let answered: Vec<_> = answered.collect();
    cutter.join().unwrap();
    let handled = handled.lock().unwrap().clone();
    assert!(answered.iter().all(|it| handled.contains(it)));
    for asker in 0..2 {
        let of_asker = handled.iter().filter(|it| it.0 == asker);
        assert!(
            of_asker.is_sorted_by(|one, other| one < other),
            "{handled:?}"
        );
    }
    actor.stop();
    let exit = monitor.recv_timeout(Duration::from_secs(3600)).unwrap();
    assert!(
        matches!(exit, Some(Exit::Stopped | Exit::NodeLost)),
        "{exit:?}"
    );
    one.close();
    other.close();
    thread::sleep(LEASE);
}

/// Without a cut no node is lost; after a cut it is, within four seconds, and monitors are told.
#[pirn_sim::test(seeds(0..20))]
fn a_lost_node_is_noticed() {
    let server = Server::new(LEASE, LATENCY);
    let [(one, _), (other, wire)] = nodes::<2>(&server);
    let actor = pirn_actor::function(|work: Work| work.number);
    other.join("workers", &actor).unwrap().accepts::<Work>();
    let workers: Worker = one.group("workers");
    let monitor = workers.monitor().unwrap();
    nap(20_000);
    assert_eq!((one.nodes().len(), monitor.try_recv()), (2, None));
    let ends = below(2) == 0;
    match ends {
        true => actor.stop(),
        false => wire.cut(),
    }
    thread::sleep(Duration::from_millis(4000 + 4 * LATENCY));
    let exit = monitor.try_recv();
    assert_eq!(
        exit,
        Some(if ends { Exit::Stopped } else { Exit::NodeLost })
    );
    assert_eq!(one.nodes().len(), if ends { 2 } else { 1 });
    wire.heal();
    thread::sleep(Duration::from_secs(2));
    assert_eq!(one.nodes().len(), 2, "it is heard of again");
    one.close();
    other.close();
    thread::sleep(LEASE);
}

/// A durable queue whose workers fail, end, and lose their links: each message is handled until it
/// is done, or is a dead letter.
#[pirn_sim::test(seeds(0..5), pauses(3000, Duration::from_secs(2)))]
fn a_durable_message_is_handled_or_a_dead_letter() {
    const ATTEMPTS: u64 = 3;
    let server = Server::new(LEASE, LATENCY);
    let nodes = nodes::<3>(&server);
    let handled = Arc::new(Mutex::new(BTreeMap::<u64, u64>::new()));
    let options = DurableOptions::new()
        .attempts(ATTEMPTS)
        .at_once(1 + below(2) as usize)
        .backoff(Duration::from_secs(1)..Duration::from_secs(4));
    let [sender, workers @ ..] = &nodes;
    let actors: Vec<_> = workers
        .iter()
        .map(|(node, _)| {
            let log = Arc::clone(&handled);
            let actor = pirn_actor::Builder::new()
                .restarts(pirn_actor::Restarts::at_most(usize::MAX))
                .spawn(move || {
                    let log = Arc::clone(&log);
                    pirn_actor::Function::new(move |work: Work| {
                        let _ = sleep_interruptible(Duration::from_millis(below(2000)));
                        if work.number % 4 == 3 || below(5) == 0 {
                            std::panic::resume_unwind(Box::new("a bug"));
                        }
                        *log.lock().unwrap().entry(work.number).or_default() += 1;
                        work.number
                    })
                })
                .unwrap();
            let queue = node.durable_with::<Work>("work", options.clone()).unwrap();
            (queue.serve(&actor).unwrap(), actor)
        })
        .collect();
    let cutter = cuts(workers.iter().map(|it| Arc::clone(&it.1)).collect(), 3);
    let queue = sender.0.durable_with::<Work>("work", options).unwrap();
    for number in 0..8 {
        nap(3000);
        let work = Work { asker: 0, number };
        assert!(queue.send_once(&number.to_string(), &work).unwrap());
        assert!(!queue.send_once(&number.to_string(), &work).unwrap());
    }
    cutter.join().unwrap();
    thread::sleep(Duration::from_secs(100));
    assert_eq!(server.left(), 0, "a message is left");
    let dead = queue.dead_letters(100).unwrap();
    let dead: Vec<u64> = dead
        .iter()
        .map(|it| serde_json::from_slice::<Work>(&it.body).unwrap().number)
        .collect();
    let handled = handled.lock().unwrap();
    for number in 0..8 {
        let (times, letters) = (
            handled.get(&number).copied().unwrap_or_default(),
            dead.iter().filter(|it| **it == number).count(),
        );
        assert!(times > 0 || letters == 1, "{number} has vanished");
        assert!(letters <= 1 && times <= ATTEMPTS);
        assert!(number % 4 != 3 || times == 0);
    }
    for (workers, actor) in &actors {
        workers.stop();
        actor.stop();
    }
    nodes.iter().for_each(|it| it.0.close());
    thread::sleep(LEASE);
}
