//! Names, topics, watches, processes that choose.

use crate::common::{below, nap};
use pirn_actor::error::Refusal;
use pirn_actor::process::Inbox;
use pirn_actor::registry::Registry;
use pirn_actor::topic::Topic;
use pirn_actor::{Builder, Context, Exit, Handler, receive};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// The timers' thread rests for so long before it ends.
const REST: Duration = Duration::from_secs(1);

#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn one_actor_has_a_name_and_it_is_free_at_its_end() {
    let registry = Registry::new();
    let holders = Arc::new(AtomicU64::new(0));
    let threads: Vec<_> = (0..3)
        .map(|thread| {
            let (registry, holders) = (registry.clone(), Arc::clone(&holders));
            thread::spawn(move || {
                for _ in 0..3 {
                    let actor = pirn_actor::function(move |()| thread);
                    while registry.register("the-one", &actor).is_err() {
                        nap(5);
                    }
                    assert_eq!(holders.fetch_add(1, SeqCst), 0, "two have the name");
                    let found = registry.address::<(), u64>("the-one").unwrap();
                    assert_eq!(found.ask(()), Ok(thread));
                    drop(found);
                    nap(5);
                    holders.fetch_sub(1, SeqCst);
                    match below(3) {
                        0 => drop(actor),
                        1 => actor.kill(),
                        _ => assert!(registry.unregister("the-one")),
                    }
                }
            })
        })
        .collect();
    threads.into_iter().for_each(|it| it.join().unwrap());
}

/// Messages to a name that no actor has yet: each comes once, in order, or is told as undelivered.
#[pirn_sim::test(seeds(0..100), pauses(200, Duration::from_millis(20)))]
fn an_early_message_comes_once_or_is_told() {
    let registry = Registry::new();
    let (come, lost) = (
        Arc::new(Mutex::new(Vec::new())),
        Arc::new(Mutex::new(Vec::new())),
    );
    let undelivered = Arc::clone(&lost);
    registry.on_undelivered(move |it| {
        let message = *it.message.downcast::<(u64, u64)>().unwrap();
        undelivered.lock().unwrap().push(message);
    });
    let senders: Vec<_> = (0..2)
        .map(|sender| {
            let registry = registry.clone();
            thread::spawn(move || {
                let mut refused = Vec::new();
                for n in 0..5 {
                    nap(10);
                    let limit = Duration::from_millis(1 + below(30));
                    if let Err(error) = registry.send_early("late", (sender, n), 3, limit) {
                        assert!(matches!(error.refusal(), Refusal::Full), "{error:?}");
                        refused.push((sender, n));
                    }
                }
                refused
            })
        })
        .collect();
    nap(40);
    let log = Arc::clone(&come);
    let actor = pirn_actor::consumer(move |it: (u64, u64)| log.lock().unwrap().push(it));
    registry.register("late", &actor).unwrap();
    let refused = senders.into_iter().flat_map(|it| it.join().unwrap());
    let refused: Vec<_> = refused.collect();
    thread::sleep(REST);
    let come = come.lock().unwrap().clone();
    for sender in 0..2 {
        let of_sender = come.iter().filter(|it| it.0 == sender);
        let of_sender: Vec<_> = of_sender.collect();
        assert!(of_sender.is_sorted_by(|one, other| one < other), "{come:?}");
    }
    let mut all = [come, lost.lock().unwrap().clone(), refused].concat();
    all.sort_unstable();
    let sent = (0..2).flat_map(|sender| (0..5).map(move |n| (sender, n)));
    assert!(all.iter().copied().eq(sent), "{all:?}");
}

#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn each_subscriber_gets_or_misses_each_message() {
    let is_relayed = below(2) == 0;
    let topic = match is_relayed {
        true => Topic::per_subscriber(),
        false => Topic::new().patience(Duration::from_millis(below(2) * 3)),
    };
    let subscribers: Vec<_> = (0..3)
        .map(|_| {
            let got = Arc::new(Mutex::new(Vec::new()));
            let log = Arc::clone(&got);
            let actor = Builder::new().capacity(2).consumer(move |it: (u64, u64)| {
                log.lock().unwrap().push(it);
                nap(5);
            });
            let subscription = topic.subscribe(&actor);
            (actor, subscription, got)
        })
        .collect();
    let publishers: Vec<_> = (0..2)
        .map(|publisher| {
            let topic = topic.clone();
            thread::spawn(move || {
                (0..5)
                    .map(|n| {
                        nap(5);
                        topic.publish((publisher, n))
                    })
                    .sum::<usize>()
            })
        })
        .collect();
    let told: usize = publishers.into_iter().map(|it| it.join().unwrap()).sum();
    thread::sleep(REST);
    let mut got_all = 0;
    for (_actor, subscription, got) in &subscribers {
        let got = got.lock().unwrap();
        assert_eq!(got.len() as u64 + subscription.missed(), 10);
        assert!(!is_relayed || got.len() == 10);
        for publisher in 0..2 {
            let of_one = got.iter().filter(|it| it.0 == publisher);
            assert!(of_one.map(|it| it.1).is_sorted(), "{got:?}");
        }
        got_all += got.len();
    }
    assert_eq!(told, got_all);
}

/// Watches others, and counts what it is told.
struct Watcher(Arc<Mutex<Vec<(u64, Exit)>>>);

impl Handler<(u64, pirn_actor::Address<()>)> for Watcher {
    type Reply = ();
    fn handle(&mut self, (n, to): (u64, pirn_actor::Address<()>), context: &Context<Self>) {
        context.watch(&to, move |exit| (n, exit));
    }
}

impl Handler<(u64, Exit)> for Watcher {
    type Reply = ();
    fn handle(&mut self, told: (u64, Exit), _: &Context<Self>) {
        self.0.lock().unwrap().push(told);
    }
}

#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(20)))]
fn a_watcher_is_told_of_each_end_once() {
    let told = Arc::new(Mutex::new(Vec::new()));
    let watcher = pirn_actor::spawn(Watcher(Arc::clone(&told)));
    let watched: Vec<_> = (0..4)
        .map(|n| {
            let actor = pirn_actor::consumer(|()| _ = nap(5));
            watcher.send((n, actor.clone())).unwrap();
            actor.send(()).unwrap();
            thread::spawn(move || {
                nap(5);
                match n {
                    0 => actor.close(),
                    1 => actor.stop(),
                    2 => actor.kill(),
                    _ => drop(actor),
                }
            })
        })
        .collect();
    watched.into_iter().for_each(|it| it.join().unwrap());
    thread::sleep(REST);
    let mut told = std::mem::take(&mut *told.lock().unwrap());
    told.sort_by_key(|it| it.0);
    let exits = [Exit::Closed, Exit::Stopped, Exit::Killed, Exit::Closed];
    assert!(told.iter().cloned().eq((0..).zip(exits)), "{told:?}");
}

enum Message {
    Order(u64),
    Paid(u64),
}

/// A process that receives selectively loses nothing, and keeps the order of what stays.
#[pirn_sim::test(seeds(0..60), pauses(200, Duration::from_millis(5)))]
fn what_a_process_does_not_receive_stays_in_order() {
    let desk = Builder::new().process(|inbox: &mut Inbox<Message>| {
        let mut served = Vec::new();
        while served.len() < 6 {
            let order = receive!(inbox => { Message::Order(order) => order });
            let paid = receive!(inbox => {
                Message::Paid(paid) if paid == order => true,
                after Duration::from_secs(60) => false,
            });
            served.push((order, paid));
        }
        Ok::<_, pirn_actor::process::RecvError>(served)
    });
    let desk = desk.unwrap();
    let senders = [
        {
            let desk = desk.clone();
            thread::spawn(move || {
                for order in 0..6 {
                    nap(5);
                    desk.send(Message::Order(order)).unwrap();
                }
            })
        },
        {
            let desk = desk.clone();
            thread::spawn(move || {
                for order in [5, 3, 4, 1, 2] {
                    nap(5);
                    desk.send(Message::Paid(order)).unwrap();
                }
            })
        },
    ];
    senders.into_iter().for_each(|it| it.join().unwrap());
    let served = desk.into_result().unwrap().unwrap();
    let all = (0..6).map(|order| (order, order > 0));
    assert!(served.iter().copied().eq(all), "{served:?}");
}
