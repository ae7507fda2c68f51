//! Room, order, and the three ends.

use crate::common::{Count, One, below, nap};
use pirn_actor::error::Refusal;
use pirn_actor::reply::Reply;
use pirn_actor::{AskError, Builder, Context, Exit, Handler, Overflow};
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

#[derive(Clone, Copy, Debug, PartialEq)]
enum End {
    Dropped,
    Closed,
    Stopped,
    Killed,
}

const ENDS: [End; 4] = [End::Dropped, End::Closed, End::Stopped, End::Killed];
const OVERFLOWS: [Overflow; 5] = [
    Overflow::Wait,
    Overflow::Fail,
    Overflow::DropNew,
    Overflow::DropOld,
    Overflow::Stop,
];

struct Job {
    sender: u64,
    number: u64,
    _there: One,
}

type Handled = Arc<Mutex<Vec<(u64, u64)>>>;

struct Worker {
    at_work: Count,
    handled: Handled,
    naps: u64,
    _there: One,
}

impl Handler<Job> for Worker {
    type Reply = (u64, u64);
    fn handle(&mut self, job: Job, _: &Context<Self>) -> (u64, u64) {
        let (_at_work, threads) = self.at_work.add();
        assert_eq!(threads, 1, "two threads work on one state");
        self.handled.lock().unwrap().push((job.sender, job.number));
        nap(self.naps);
        (job.sender, job.number)
    }
}

/// What a sender knows at its end.
#[derive(Default)]
struct Sent {
    accepted: Vec<u64>,
    replies: Vec<(u64, Reply<(u64, u64)>)>,
}

/// Senders, an actor with little room, and an end in the middle: nothing vanishes.
fn nothing_vanishes() {
    const CAPACITY: u64 = 3;
    let overflow = OVERFLOWS[below(5) as usize];
    let end = ENDS[below(4) as usize];
    let (messages, states, at_work) = (Count::default(), Count::default(), Count::default());
    let (handled, undelivered) = (Handled::default(), Arc::new(AtomicUsize::new(0)));
    let state = Worker {
        at_work: at_work.clone(),
        handled: Arc::clone(&handled),
        naps: 1 + below(20),
        _there: states.add().0,
    };
    let lost = Arc::clone(&undelivered);
    let actor = Builder::new()
        .capacity(CAPACITY as usize)
        .overflow(overflow)
        .on_undelivered(move |_| _ = lost.fetch_add(1, SeqCst))
        .spawn_with(state);
    let (monitor, ends) = (actor.monitor(), Count::default());
    let ended = ends.clone();
    actor.on_exit(move |_| std::mem::forget(ended.add()));

    let naps = 1 + below(10);
    let senders: Vec<_> = (0..3)
        .map(|sender| {
            let (actor, messages) = (actor.clone(), messages.clone());
            thread::spawn(move || {
                let mut sent = Sent::default();
                for number in 0..8 {
                    nap(naps);
                    let job = Job {
                        sender,
                        number,
                        _there: messages.add().0,
                    };
                    assert!(actor.len() <= CAPACITY as usize);
                    let result = match number % 2 {
                        0 => actor.send(job),
                        _ => actor
                            .ask_later(job)
                            .map(|reply| sent.replies.push((number, reply))),
                    };
                    match result {
                        Ok(()) => sent.accepted.push(number),
                        Err(error) => match error.refusal() {
                            Refusal::Full => {
                                assert!(!matches!(overflow, Overflow::Wait | Overflow::DropOld));
                            }
                            refusal => assert_eq!(*refusal, Refusal::Closed),
                        },
                    }
                }
                (sender, sent)
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(below(80)));
    match end {
        End::Dropped => {}
        End::Closed => actor.close(),
        End::Stopped => actor.stop(),
        End::Killed => actor.kill(),
    }
    drop(actor);
    let sent: Vec<_> = senders.into_iter().map(|it| it.join().unwrap()).collect();
    let exit = monitor.recv().unwrap();
    let (left, states) = (at_work.get(), states.get());
    assert_eq!(
        (left, states),
        (0, 0),
        "the state goes before the end is told"
    );
    match (&exit, end) {
        (Exit::Closed, End::Dropped | End::Closed)
        | (Exit::Stopped, End::Stopped)
        | (Exit::Killed, End::Killed) => {}
        (Exit::Failed(_), _) => assert_eq!(overflow, Overflow::Stop),
        _ => panic!("{exit:?} after {end:?}"),
    }

    let handled = std::mem::take(&mut *handled.lock().unwrap());
    let mut accepted = 0;
    for (sender, sent) in sent {
        let mine = handled.iter().filter(|it| it.0 == sender);
        let mine: Vec<_> = mine.map(|it| it.1).collect();
        accepted += sent.accepted.len();
        assert!(mine.is_sorted(), "in the order of their sender");
        assert!(mine.iter().all(|it| sent.accepted.contains(it)));
        match (overflow, &exit) {
            (Overflow::DropNew | Overflow::DropOld, _) => {}
            (_, Exit::Closed) => assert_eq!(mine, sent.accepted, "all that it took"),
            _ => assert_eq!(mine, sent.accepted[..mine.len()], "the first that it took"),
        }
        for (number, reply) in sent.replies {
            match reply.recv() {
                Ok(answer) => {
                    assert_eq!(answer, (sender, number));
                    assert!(mine.contains(&number));
                }
                Err(AskError::Gone) => assert!(!mine.contains(&number)),
                Err(AskError::Full) => assert_eq!(overflow, Overflow::DropNew),
                Err(error) => panic!("{error:?}"),
            }
        }
    }
    let undelivered = undelivered.load(SeqCst);
    match overflow {
        Overflow::DropNew | Overflow::DropOld => assert!(handled.len() + undelivered <= accepted),
        _ => assert_eq!(handled.len() + undelivered, accepted),
    }
    assert_eq!(messages.get(), 0, "each message is dropped");
    thread::sleep(Duration::from_secs(1)); // All are told, one after the other.
    assert_eq!(ends.get(), 1, "the end is told once");
}

#[pirn_sim::test(seeds(0..100))]
fn what_is_sent_is_handled_in_order_or_comes_back() {
    nothing_vanishes();
}

#[pirn_sim::test(seeds(0..100), pauses(100, Duration::from_millis(50)))]
fn what_is_sent_to_pausing_threads_is_handled_in_order_or_comes_back() {
    nothing_vanishes();
}

#[pirn_sim::test(seeds(0..60))]
fn senders_enter_in_order_of_arrival_and_urgent_messages_first() {
    let handled = Handled::default();
    let log = Arc::clone(&handled);
    let actor = Builder::new().capacity(1).consumer(move |it: (u64, u64)| {
        log.lock().unwrap().push(it);
        thread::sleep(Duration::from_secs(1));
    });
    for _ in 0..2 {
        actor.send((0, 0)).unwrap(); // One is handled, one fills the mailbox.
        thread::sleep(Duration::from_millis(1));
    }
    let senders: Vec<_> = (1..5)
        .map(|sender| {
            let actor = actor.clone();
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(10 * sender));
                actor.send((sender, 0)).unwrap();
            })
        })
        .collect();
    thread::sleep(Duration::from_millis(500));
    actor.send_urgent((9, 0)).unwrap();
    senders.into_iter().for_each(|it| it.join().unwrap());
    actor.close();
    actor.join();
    let order: Vec<_> = handled.lock().unwrap().iter().map(|it| it.0).collect();
    assert_eq!(order, [0, 9, 0, 1, 2, 3, 4]);
}

/// Each of several threads ends the actor: the strictest end holds, and all are told of one end.
#[pirn_sim::test(seeds(0..100), pauses(100, Duration::from_millis(50)))]
fn all_are_told_of_the_same_end() {
    let state = Worker {
        at_work: Count::default(),
        handled: Handled::default(),
        naps: 10,
        _there: Count::default().add().0,
    };
    let actor = pirn_actor::spawn(state);
    let messages = Count::default();
    for number in 0..below(3) {
        let _there = messages.add().0;
        actor
            .send(Job {
                sender: 0,
                number,
                _there,
            })
            .unwrap();
    }
    let told = Arc::new(Mutex::new(BTreeMap::new()));
    let threads: Vec<_> = (0..4)
        .map(|thread| {
            let (actor, told) = (actor.clone(), Arc::clone(&told));
            thread::spawn(move || {
                nap(20);
                let of_exit = Arc::clone(&told);
                actor.on_exit(move |exit| {
                    let before = of_exit.lock().unwrap().insert((thread, 0), exit.clone());
                    assert_eq!(before, None);
                });
                let monitor = actor.monitor();
                match below(4) {
                    0 => actor.close(),
                    1 => actor.stop(),
                    2 => actor.kill(),
                    _ => drop(actor.clone()),
                }
                let of_monitor = match below(2) {
                    0 => monitor.recv().unwrap(),
                    _ => actor.join(),
                };
                told.lock().unwrap().insert((thread, 1), of_monitor);
            })
        })
        .collect();
    // If none of them ends it.
    thread::sleep(Duration::from_secs(10));
    actor.close();
    threads.into_iter().for_each(|it| it.join().unwrap());
    let exit = actor.join();
    let told = std::mem::take(&mut *told.lock().unwrap());
    assert_eq!(told.len(), 8);
    assert!(told.values().all(|it| *it == exit), "{told:?}");
    assert_eq!(messages.get(), 0);
}
