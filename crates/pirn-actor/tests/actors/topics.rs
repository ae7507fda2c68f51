//! Topics.

use crate::common::{Gate, until, watched};
use pirn::thread;
use pirn_actor::pool::Pool;
use pirn_actor::process::Inbox;
use pirn_actor::topic::Topic;
use pirn_actor::{self as actor, Address, Builder, Exit, Function, Overflow};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

fn listener<M: Send + 'static>() -> (Address<M>, mpsc::Receiver<M>) {
    let (tell, told) = mpsc::channel();
    (actor::consumer(move |m| drop(tell.send(m))), told)
}

/// An actor with one place, which is taken, until the gate opens.
fn full() -> (Address<u32>, mpsc::Receiver<u32>, Gate) {
    let (gate, begun) = (Gate::new(), Gate::new());
    let (blocked, begins) = (gate.clone(), begun.clone());
    let (tell, told) = mpsc::channel();
    let full = Builder::new().capacity(1).consumer(move |n| {
        begins.open();
        blocked.wait();
        let _ = tell.send(n);
    });
    full.send(100).unwrap();
    begun.wait();
    full.send(101).unwrap();
    (full, told, gate)
}

fn all_deliveries() -> [Topic<u32>; 2] {
    [Topic::new(), Topic::per_subscriber()]
}

#[watched]
fn everybody_who_has_subscribed_is_told() {
    for topic in all_deliveries() {
        let (first, first_told) = listener();
        let (tell, function_told) = mpsc::channel();
        let process = actor::process::spawn(|inbox: &mut Inbox<u32>| inbox.recv());
        let _subscriptions = [
            topic.subscribe(&first),
            topic.subscribe(&process),
            topic.subscribe_with(move |n| tell.send(n).unwrap()),
        ];
        assert_eq!(topic.subscribers(), 3);
        assert_eq!(topic.publish(7), 3);
        assert_eq!(first_told.recv().unwrap(), 7);
        assert_eq!(function_told.recv().unwrap(), 7);
        assert_eq!(process.into_result().unwrap(), Ok(7));
    }
}

#[watched]
fn what_one_thread_publishes_is_told_in_order() {
    for topic in all_deliveries() {
        let (to, told) = listener();
        let (tell, function_told) = mpsc::channel();
        let _one = topic.subscribe(&to);
        let _other = topic.subscribe_with(move |n| tell.send(n).unwrap());
        (0..500).for_each(|n| assert_eq!(topic.publish(n), 2));
        assert!(told.iter().take(500).eq(0..500));
        assert!(function_told.iter().take(500).eq(0..500));
    }
}

#[watched]
fn nobody_waits_for_a_full_subscriber_which_counts_what_it_misses() {
    let topic = Topic::new();
    let (slow, told, gate) = full();
    let (other, heard) = listener();
    let slow_one = topic.subscribe(&slow);
    let other_one = topic.subscribe(&other);
    (0..5).for_each(|n| assert_eq!(topic.publish(n), 1));
    assert!(heard.iter().take(5).eq(0..5));
    assert_eq!((slow_one.missed(), other_one.missed()), (5, 0));
    gate.open();
    until(|| slow.is_empty());
    assert_eq!(topic.publish(5), 2);
    assert!(told.iter().take(3).eq([100, 101, 5]));
}

#[watched]
fn a_publisher_with_patience_waits_for_room_for_as_long_as_that() {
    let topic = Topic::new().patience(Duration::from_millis(2));
    let (slow, _told, gate) = full();
    let subscription = topic.subscribe(&slow);
    assert_eq!(topic.publish(0), 0);
    assert_eq!(subscription.missed(), 1);
    let patient = topic.patience(Duration::from_secs(3600));
    let publishes = thread::spawn(move || patient.publish(1));
    gate.open();
    assert_eq!(publishes.join().unwrap(), 1);
    assert_eq!(subscription.missed(), 1);
}

#[watched]
fn a_publisher_that_is_interrupted_while_it_waits_for_room_learns_of_it_later() {
    let topic = Topic::new().patience(Duration::from_secs(3600));
    let (slow, _told, _gate) = full();
    let subscription = topic.subscribe(&slow);
    let publishes = thread::spawn(move || (topic.publish(0), thread::is_interrupted()));
    publishes.thread().interrupt();
    assert_eq!(publishes.join().unwrap(), (0, true));
    assert_eq!(subscription.missed(), 1);
}

#[watched]
fn an_actor_per_subscriber_waits_for_the_slow_ones() {
    let topic = Topic::per_subscriber();
    let (slow, told, gate) = full();
    let (other, heard) = listener();
    let _subscriptions = [topic.subscribe(&slow), topic.subscribe(&other)];
    (0..50).for_each(|n| assert_eq!(topic.publish(n), 2));
    assert!(heard.iter().take(50).eq(0..50));
    gate.open();
    assert!(told.iter().take(52).eq([100, 101].into_iter().chain(0..50)));
}

#[watched]
fn the_end_of_one_subscription_ends_no_other_of_any_topic() {
    for topics in
        [all_deliveries(), all_deliveries()].map(|topics| topics.into_iter().collect::<Vec<_>>())
    {
        let (to, told) = listener();
        let (tell, function_told) = mpsc::channel();
        let subscriptions: Vec<_> = topics
            .iter()
            .map(|topic| {
                let tell = tell.clone();
                drop((topic.subscribe(&to), topic.subscribe_with(|_| ())));
                [
                    topic.subscribe(&to),
                    topic.subscribe_with(move |n| tell.send(n).unwrap()),
                ]
            })
            .collect();
        for topic in &topics {
            topic.publish(3);
            assert_eq!(told.recv().unwrap(), 3);
            assert_eq!(function_told.recv().unwrap(), 3);
        }
        drop(subscriptions);
        topics
            .iter()
            .for_each(|topic| assert_eq!(topic.publish(4), 0));
        assert!(to.exit().is_none());
    }
}

#[watched]
fn a_subscriber_that_has_ended_is_removed() {
    for topic in all_deliveries() {
        let (to, _told) = listener();
        let (other, heard) = listener();
        let ended = topic.subscribe(&to);
        topic.subscribe(&other).detach();
        // The topic does not keep it open.
        let monitor = to.monitor();
        drop(to);
        assert_eq!(monitor.recv().unwrap(), Exit::Closed);
        topic.publish(1);
        assert_eq!(heard.recv().unwrap(), 1);
        assert!(ended.is_over());
        assert_eq!(topic.subscribers(), 1);
        until(|| topic.publish(2) == 1);
    }
}

#[watched]
fn a_topic_takes_no_more_subscribers_than_its_limit_and_those_that_have_ended_do_not_count() {
    let topic = Topic::new().limit(2);
    let (first, _told) = listener();
    let (second, _told) = listener::<u32>();
    let _ended = topic.subscribe(&first);
    let dropped = topic.subscribe(&second);
    assert!(topic.try_subscribe(&second).is_err());
    assert!(topic.try_subscribe_with(|_| ()).is_err());
    first.stop();
    first.join();
    let _again = topic.try_subscribe(&second).unwrap();
    drop(dropped);
    let _third = topic.try_subscribe_with(|_| ()).unwrap();
    assert!(topic.try_subscribe(&second).is_err());
}

#[watched]
fn a_panic_of_a_subscriber_concerns_nobody_else() {
    for topic in all_deliveries() {
        let (to, told) = listener();
        let calls = Arc::new(AtomicUsize::new(0));
        let counts = Arc::clone(&calls);
        let _panics = topic.subscribe_with(move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            panic!("a subscriber");
        });
        let _other = topic.subscribe(&to);
        topic.publish(1);
        topic.publish(1);
        assert!(told.iter().take(2).eq([1, 1]));
        until(|| calls.load(Ordering::SeqCst) == 2);
    }
}

#[watched]
fn a_subscriber_may_end_its_own_subscription_while_it_is_told() {
    for topic in all_deliveries() {
        let own = Arc::new(Mutex::new(None));
        let calls = Arc::new(AtomicUsize::new(0));
        let (ends, counts) = (Arc::clone(&own), Arc::clone(&calls));
        let subscription = topic.subscribe_with(move |_| {
            counts.fetch_add(1, Ordering::SeqCst);
            let subscription = ends.lock().unwrap().take();
            drop(subscription);
        });
        *own.lock().unwrap() = Some(subscription);
        topic.publish(1);
        until(|| topic.subscribers() == 0);
        topic.publish(2);
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }
}

#[watched]
fn a_subscription_that_its_subscriber_is_stuck_with_can_be_ended() {
    // The relay waits for room at an actor that never has any.
    let topic = Topic::per_subscriber();
    let (stuck, _told, _gate) = full();
    let subscription = topic.subscribe(&stuck);
    topic.publish(1);
    let relays = || {
        actor::snapshot::take()
            .iter()
            .filter(|a| &*a.name == "subscriber")
            .count()
    };
    assert!(relays() >= 1);
    drop(subscription);
    assert_eq!(stuck.len(), 1);
}

#[watched]
fn an_actor_may_end_the_subscription_of_a_function_that_asks_it() {
    let topic = Topic::new();
    let held = Arc::new(Mutex::new(None));
    let (asked, asks) = mpsc::channel::<Result<(), actor::AskError>>();
    let ends = Arc::clone(&held);
    let begun = Gate::new();
    let begins = begun.clone();
    let owner = actor::function(move |is_end: bool| {
        if is_end {
            begins.wait();
            let subscription = ends.lock().unwrap().take();
            drop::<Option<actor::topic::Subscription>>(subscription);
        }
    });
    let ask = owner.clone();
    *held.lock().unwrap() = Some(topic.subscribe_with(move |()| {
        begun.open();
        asked.send(ask.ask(false)).unwrap();
    }));
    let ends = owner.ask_later(true).unwrap();
    topic.publish(());
    assert_eq!(ends.recv(), Ok(()));
    // It is answered, or told of the deadlock.
    drop(asks.recv().unwrap());
}

#[watched]
fn nobody_is_told_after_the_subscription_is_dropped() {
    for topic in all_deliveries() {
        let stop = Arc::new(AtomicBool::new(false));
        // A panic of the subscriber would be caught.
        let told_late = Arc::new(AtomicUsize::new(0));
        let publishers: Vec<_> = (0..3)
            .map(|_| {
                let (topic, stop) = (topic.clone(), Arc::clone(&stop));
                thread::spawn(move || {
                    while !stop.load(Ordering::Relaxed) {
                        topic.publish(1);
                        thread::yield_now();
                    }
                })
            })
            .collect();
        let subscribers: Vec<_> = (0..4)
            .map(|n| {
                let (topic, late) = (topic.clone(), Arc::clone(&told_late));
                thread::spawn(move || {
                    for _ in 0..60 {
                        let is_over = Arc::new(AtomicBool::new(false));
                        let calls = Arc::new(AtomicU32::new(0));
                        let (over, counts) = (Arc::clone(&is_over), Arc::clone(&calls));
                        let late = Arc::clone(&late);
                        let look = move || {
                            late.fetch_add(over.load(Ordering::SeqCst).into(), Ordering::SeqCst)
                        };
                        let subscription = topic.subscribe_with(move |_| {
                            look();
                            thread::yield_now();
                            counts.fetch_add(1, Ordering::SeqCst);
                            look();
                        });
                        until(|| calls.load(Ordering::SeqCst) >= n % 3);
                        drop(subscription);
                        is_over.store(true, Ordering::SeqCst);
                        let before = calls.load(Ordering::SeqCst);
                        thread::yield_now();
                        assert_eq!(calls.load(Ordering::SeqCst), before);
                    }
                })
            })
            .collect();
        for subscriber in subscribers {
            subscriber.join().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        for publisher in publishers {
            publisher.join().unwrap();
        }
        assert_eq!(told_late.load(Ordering::SeqCst), 0);
        assert_eq!(topic.subscribers(), 0);
    }
}

#[watched]
fn nothing_is_sent_to_a_mailbox_after_the_subscription_is_dropped() {
    for topic in all_deliveries() {
        let stop = Arc::new(AtomicBool::new(false));
        let publishes = {
            let (topic, stop) = (topic.clone(), Arc::clone(&stop));
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    topic.publish(1);
                    thread::yield_now();
                }
            })
        };
        for _ in 0..200 {
            let count = Arc::new(AtomicUsize::new(0));
            let counts = Arc::clone(&count);
            let to = Builder::new().unbounded().function(move |n: u32| {
                if n > 0 {
                    counts.fetch_add(1, Ordering::SeqCst);
                }
            });
            let subscription = topic.subscribe(&to);
            thread::yield_now();
            drop(subscription);
            to.ask(0).unwrap(); // after all that was sent
            let before = count.load(Ordering::SeqCst);
            thread::yield_now();
            to.ask(0).unwrap();
            assert_eq!(count.load(Ordering::SeqCst), before);
        }
        stop.store(true, Ordering::Relaxed);
        publishes.join().unwrap();
    }
}

#[watched]
fn a_topic_can_subscribe_to_a_topic_and_does_not_keep_it() {
    let (up, down) = (Topic::new(), Topic::new());
    let (to, told) = listener();
    let _one = up.subscribe(&down);
    let _two = down.subscribe(&to);
    assert_eq!(up.publish(1), 1);
    assert_eq!(told.recv().unwrap(), 1);
    drop(down);
    assert_eq!(up.publish(2), 0);
    assert_eq!(up.subscribers(), 0);
}

#[watched]
fn what_was_published_is_told_though_the_topic_is_dropped() {
    for topic in all_deliveries() {
        let (tell, told) = mpsc::channel();
        topic
            .subscribe_with(move |n| tell.send(n).unwrap())
            .detach();
        (0..10).for_each(|_| assert_eq!(topic.publish(1), 1));
        drop(topic);
        assert_eq!(told.iter().count(), 10);
    }
}

#[watched]
fn a_dropping_mailbox_does_as_it_says() {
    let (gate, begun) = (Gate::new(), Gate::new());
    let (blocked, begins) = (gate.clone(), begun.clone());
    let (tell, told) = mpsc::channel();
    let latest = Builder::new()
        .capacity(1)
        .overflow(Overflow::DropOld)
        .consumer(move |n| {
            begins.open();
            blocked.wait();
            let _ = tell.send(n);
        });
    latest.send(0).unwrap();
    begun.wait();
    let topic = Topic::new();
    let subscription = topic.subscribe(&latest);
    (1..=5).for_each(|n| assert_eq!(topic.publish(n), 1));
    gate.open();
    assert!(told.iter().take(2).eq([0, 5]));
    assert_eq!(subscription.missed(), 0);
}

#[watched]
fn a_pool_can_subscribe_and_is_not_kept_open_by_that() {
    let (tell, told) = mpsc::channel();
    let pool = Pool::fixed(2)
        .spawn(move || {
            let tell = tell.clone();
            Function::new(move |n: u32| tell.send(n).unwrap())
        })
        .unwrap();
    let topic = Topic::<u32>::new();
    let subscription = topic.subscribe(&pool);
    (1..=3).for_each(|n| assert_eq!(topic.publish(n), 1));
    let mut handled: Vec<_> = told.iter().take(3).collect();
    handled.sort_unstable();
    assert_eq!(handled, [1, 2, 3]);
    let monitor = pool.monitor();
    drop(pool);
    assert_eq!(monitor.recv().unwrap(), Exit::Closed);
    until(|| subscription.is_over());
    assert_eq!(topic.publish(4), 0);
}
