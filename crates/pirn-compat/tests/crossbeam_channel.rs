//! `crossbeam-channel`: bounded channels, `select!`, timeouts and disconnection.

use std::time::{Duration, Instant};

use crossbeam_channel::{
    RecvTimeoutError, Select, SendTimeoutError, after, bounded, never, select, tick, unbounded,
};
use pirn::thread;
use pirn_compat::{Latch, NEVER, THREADS, on_threads, setup, watchdog};

/// Many producers and many consumers on one channel: every message arrives exactly once, and
/// those of one producer reach each consumer in the order they were sent.
fn exchange(capacity: usize) {
    const EACH: usize = 50;
    let (sender, receiver) = bounded(capacity);
    let receiving = Latch::new(THREADS);
    let received = thread::scope(|scope| {
        let consumers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (receiver, receiving) = (receiver.clone(), &receiving);
                scope.spawn(move || {
                    receiving.arrive();
                    receiver.iter().collect::<Vec<(usize, usize)>>()
                })
            })
            .collect();
        receiving.wait();
        for producer in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || {
                for message in 0..EACH {
                    sender.send((producer, message)).unwrap();
                }
            });
        }
        drop(sender);
        consumers
            .into_iter()
            .map(|consumer| consumer.join().unwrap())
            .collect::<Vec<_>>()
    });

    for messages in &received {
        let mut by_producer = messages.clone();
        by_producer.sort_by_key(|&(producer, _)| producer); // stable: keeps the order of arrival
        assert!(by_producer.is_sorted());
    }
    let mut all: Vec<_> = received.into_iter().flatten().collect();
    all.sort_unstable();
    let sent = (0..THREADS).flat_map(|producer| (0..EACH).map(move |message| (producer, message)));
    assert!(all.into_iter().eq(sent));
}

#[test]
fn rendezvous_channel_delivers_each_message_once() {
    setup();
    let _watchdog = watchdog("rendezvous_channel_delivers_each_message_once", 60);
    exchange(0);
}

#[test]
fn bounded_channel_delivers_each_message_once() {
    setup();
    let _watchdog = watchdog("bounded_channel_delivers_each_message_once", 60);
    exchange(8);
}

#[test]
fn senders_blocked_on_a_full_channel_all_get_through() {
    setup();
    let _watchdog = watchdog("senders_blocked_on_a_full_channel_all_get_through", 60);
    let (sender, receiver) = bounded(1);
    sender.send(THREADS).unwrap(); // the channel is full
    let sending = Latch::new(THREADS);
    thread::scope(|scope| {
        for message in 0..THREADS {
            let (sender, sending) = (&sender, &sending);
            scope.spawn(move || {
                sending.arrive();
                sender.send(message).unwrap();
            });
        }
        sending.wait();
        let mut messages: Vec<_> = receiver.iter().take(THREADS + 1).collect();
        assert_eq!(messages[0], THREADS);
        messages.sort_unstable();
        assert!(messages.into_iter().eq(0..=THREADS));
    });
}

#[test]
fn a_token_goes_round_a_ring() {
    setup();
    let _watchdog = watchdog("a_token_goes_round_a_ring", 60);
    const LAPS: usize = 20;
    let ring: Vec<_> = (0..THREADS).map(|_| bounded(0)).collect();
    let (_, first) = &ring[0];
    thread::scope(|scope| {
        for index in 1..THREADS {
            let (input, output) = (&ring[index].1, &ring[(index + 1) % THREADS].0);
            scope.spawn(move || {
                for _ in 0..LAPS {
                    let token: usize = input.recv().unwrap();
                    output.send(token + 1).unwrap();
                }
            });
        }
        scope.spawn(|| {
            for lap in 0..LAPS {
                ring[1].0.send(lap * THREADS + 1).unwrap();
                assert_eq!(first.recv(), Ok((lap + 1) * THREADS));
            }
        });
    });
}

/// What woke a thread of `select_wakes_each_thread_by_the_right_channel`.
#[derive(Debug, PartialEq)]
enum Woken {
    Own(usize),
    Shared(usize),
    Quit,
}

#[test]
fn select_wakes_each_thread_by_the_right_channel() {
    setup();
    let _watchdog = watchdog("select_wakes_each_thread_by_the_right_channel", 60);
    const OWN: usize = THREADS / 4;
    const SHARED: usize = THREADS / 2;
    let own: Vec<_> = (0..THREADS).map(|_| bounded(0)).collect();
    let (shared_sender, shared) = bounded(0);
    let (quit_sender, quit) = bounded::<()>(0);
    let selecting = Latch::new(THREADS);
    let woken = thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS)
            .map(|index| {
                let (own, shared, quit) = (&own[index].1, &shared, &quit);
                let selecting = &selecting;
                scope.spawn(move || {
                    selecting.arrive();
                    select! {
                        recv(own) -> message => Woken::Own(message.unwrap()),
                        recv(shared) -> message => Woken::Shared(message.unwrap()),
                        recv(quit) -> message => { message.unwrap_err(); Woken::Quit }
                        recv(never::<()>()) -> _ => unreachable!(),
                    }
                })
            })
            .collect();
        selecting.wait();
        for (index, (sender, _)) in own.iter().enumerate().take(OWN) {
            sender.send(index).unwrap(); // returns when that thread has taken it
        }
        for message in 0..SHARED {
            shared_sender.send(message).unwrap();
        }
        drop(quit_sender);
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect::<Vec<_>>()
    });

    let (first, rest) = woken.split_at(OWN);
    assert!(first.iter().enumerate().all(|(i, w)| *w == Woken::Own(i)));
    let mut shared: Vec<_> = rest
        .iter()
        .filter_map(|woken| match woken {
            Woken::Shared(message) => Some(*message),
            _ => None,
        })
        .collect();
    shared.sort_unstable();
    assert!(shared.into_iter().eq(0..SHARED));
    let quit = rest.iter().filter(|woken| **woken == Woken::Quit).count();
    assert_eq!(quit, THREADS - OWN - SHARED);
}

/// Each thread offers to send its name and to receive another's, whichever comes first.
#[test]
fn select_pairs_senders_with_receivers() {
    setup();
    let _watchdog = watchdog("select_pairs_senders_with_receivers", 60);
    let (sender, receiver) = bounded(0);
    let partners = on_threads(THREADS, |name| {
        select! {
            send(sender, name) -> sent => { sent.unwrap(); None }
            recv(receiver) -> partner => Some(partner.unwrap()),
        }
    });

    let mut senders: Vec<_> = partners.iter().flatten().copied().collect();
    senders.sort_unstable();
    let silent = (0..THREADS).filter(|&name| partners[name].is_none());
    assert_eq!(senders.len(), THREADS / 2);
    assert!(senders.iter().copied().eq(silent));
}

#[test]
fn one_thread_selects_over_a_channel_from_every_other() {
    setup();
    let _watchdog = watchdog("one_thread_selects_over_a_channel_from_every_other", 60);
    const EACH: usize = 5;
    let channels: Vec<_> = (0..THREADS).map(|_| bounded(0)).collect();
    thread::scope(|scope| {
        for (sender, _) in &channels {
            scope.spawn(move || (0..EACH).for_each(|message| sender.send(message).unwrap()));
        }
        let collector = scope.spawn(|| {
            let mut next = vec![0; THREADS];
            let mut select = Select::new();
            for (_, receiver) in &channels {
                select.recv(receiver);
            }
            for _ in 0..THREADS * EACH {
                let operation = select.select();
                let index = operation.index();
                assert_eq!(operation.recv(&channels[index].1), Ok(next[index]));
                next[index] += 1;
            }
            next
        });
        assert_eq!(collector.join().unwrap(), vec![EACH; THREADS]);
    });
}

#[test]
fn timeouts_fire_for_all_blocked_threads() {
    setup();
    let _watchdog = watchdog("timeouts_fire_for_all_blocked_threads", 60);
    const TIMEOUT: Duration = Duration::from_millis(50);
    let (_keep_sender, empty) = bounded::<()>(0);
    let (full, _keep_receiver) = bounded(0);
    on_threads(THREADS, |index| {
        let start = Instant::now();
        match index % 4 {
            0 => assert_eq!(empty.recv_timeout(TIMEOUT), Err(RecvTimeoutError::Timeout)),
            1 => assert_eq!(
                full.send_timeout(index, TIMEOUT),
                Err(SendTimeoutError::Timeout(index))
            ),
            2 => select! {
                recv(empty) -> _ => unreachable!(),
                recv(after(TIMEOUT)) -> at => assert!(at.unwrap() >= start + TIMEOUT),
            },
            _ => select! {
                recv(empty) -> _ => unreachable!(),
                send(full, index) -> _ => unreachable!(),
                default(TIMEOUT) => {}
            },
        }
        assert!(start.elapsed() >= TIMEOUT);
    });
}

#[test]
fn ticks_come_one_period_apart() {
    setup();
    let _watchdog = watchdog("ticks_come_one_period_apart", 60);
    const PERIOD: Duration = Duration::from_millis(10);
    on_threads(THREADS, |_| {
        let start = Instant::now();
        let ticks: Vec<_> = tick(PERIOD).iter().take(3).collect();
        assert!(ticks.is_sorted());
        assert!(start.elapsed() >= 3 * PERIOD);
    });
}

#[test]
fn a_message_comes_before_a_long_timeout() {
    setup();
    let _watchdog = watchdog("a_message_comes_before_a_long_timeout", 60);
    let (sender, receiver) = unbounded();
    let receiving = Latch::new(THREADS);
    thread::scope(|scope| {
        let receivers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    receiving.arrive();
                    receiver.recv_timeout(NEVER).unwrap()
                })
            })
            .collect();
        receiving.wait();
        (0..THREADS).for_each(|message| sender.send(message).unwrap());
        let mut messages: Vec<usize> = receivers
            .into_iter()
            .map(|receiver| receiver.join().unwrap())
            .collect();
        messages.sort_unstable();
        assert!(messages.into_iter().eq(0..THREADS));
    });
}

#[test]
fn disconnection_wakes_all_blocked_threads() {
    setup();
    let _watchdog = watchdog("disconnection_wakes_all_blocked_threads", 60);
    let (sender, receiver) = bounded::<usize>(0);
    let (other_sender, other_receiver) = bounded::<usize>(0);
    let blocking = Latch::new(THREADS);
    thread::scope(|scope| {
        for index in 0..THREADS {
            let (receiver, sender) = (receiver.clone(), other_sender.clone());
            let blocking = &blocking;
            scope.spawn(move || {
                blocking.arrive();
                if index % 2 == 0 {
                    receiver.recv().unwrap_err();
                } else {
                    assert_eq!(sender.send(index).unwrap_err().into_inner(), index);
                }
            });
        }
        blocking.wait();
        drop(sender);
        drop(other_receiver);
    });
}
