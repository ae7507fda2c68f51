//! `std::sync::mpsc` between crowds of virtual threads, mixed with platform threads.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::mpsc::{self, RecvTimeoutError, SendError, TryRecvError, TrySendError};
use std::time::{Duration, Instant};

use crate::common::{block_then, crowd, crowd_size, many, on_virtual, watched};
use pirn::thread;

#[watched]
fn many_senders_reach_one_receiver() {
    let (sender, receiver) = mpsc::channel();
    let receiving = thread::spawn(move || receiver.iter().collect::<Vec<usize>>());
    crowd(|i| {
        let sender = sender.clone();
        for round in 0..10 {
            sender.send(10 * i + round).unwrap();
            thread::yield_now();
        }
    });
    drop(sender);
    let received = receiving.join().unwrap();
    assert_eq!(received.len(), 10 * crowd_size());
    // One sender's values arrive in order.
    for i in 0..crowd_size() {
        let own = received.iter().filter(|value| *value / 10 == i);
        assert!(own.copied().eq(10 * i..10 * i + 10));
    }
}

#[watched]
fn a_bounded_channel_holds_its_senders_back() {
    let (sender, receiver) = mpsc::sync_channel(1);
    block_then(
        many(),
        |i| sender.clone().send(i).unwrap(),
        move || {
            let received: HashSet<_> = receiver.iter().take(many()).collect();
            assert_eq!(received.len(), many());
            assert_eq!(receiver.try_recv(), Err(TryRecvError::Empty));
        },
    );
}

#[watched]
fn a_rendezvous_hands_over() {
    let (sender, receiver) = mpsc::sync_channel(0);
    assert_eq!(sender.try_send(1), Err(TrySendError::Full(1)));
    let receiver = Mutex::new(receiver);
    let received = Mutex::new(HashSet::new());
    // Even ones send, odd ones receive; the crowd is even.
    crowd(|i| {
        if i % 2 == 0 {
            sender.send(i).unwrap();
        } else {
            let value = receiver.lock().unwrap().recv().unwrap();
            assert!(received.lock().unwrap().insert(value));
        }
    });
    assert_eq!(received.into_inner().unwrap().len(), crowd_size() / 2);
}

#[watched]
fn a_ring_of_channels_passes_a_token() {
    let (first, mut receiver) = mpsc::channel();
    for _ in 0..many() {
        let (sender, next) = mpsc::channel();
        thread::spawn(move || {
            for token in receiver {
                sender.send(token + 1).unwrap();
            }
        });
        receiver = next;
    }
    for round in 0..5 {
        first.send(round).unwrap();
        assert_eq!(receiver.recv(), Ok(round + many()));
    }
    drop(first);
    assert!(receiver.recv().is_err());
}

#[watched]
fn both_kinds_of_thread_play_ping_pong() {
    let (ping, pings) = mpsc::sync_channel(0);
    let (pong, pongs) = mpsc::sync_channel(0);
    let platform = std::thread::spawn(move || {
        for value in pings {
            pong.send(value + 1).unwrap();
        }
    });
    on_virtual(move || {
        for i in 0..1000 {
            ping.send(i).unwrap();
            assert_eq!(pongs.recv(), Ok(i + 1));
        }
    });
    platform.join().unwrap();
}

#[watched]
fn recv_timeout_ends_in_time_or_with_the_senders() {
    crowd(|i| {
        let (sender, receiver) = mpsc::channel::<()>();
        let length = Duration::from_millis(5 + i as u64 % 10);
        let begin = Instant::now();
        assert_eq!(
            receiver.recv_timeout(length),
            Err(RecvTimeoutError::Timeout)
        );
        assert!(begin.elapsed() >= length);
        drop(sender);
        assert_eq!(
            receiver.recv_timeout(Duration::from_secs(3600)),
            Err(RecvTimeoutError::Disconnected)
        );
    });
}

#[watched]
fn recv_timeout_gives_what_comes_in_time() {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..many()).map(|_| mpsc::channel()).unzip();
    let receivers: Vec<_> = receivers.into_iter().map(Mutex::new).collect();
    block_then(
        many(),
        |i| {
            let receiver = receivers[i].lock().unwrap();
            assert_eq!(receiver.recv_timeout(Duration::from_secs(3600)), Ok(i));
        },
        || {
            for (i, sender) in senders.into_iter().enumerate() {
                sender.send(i).unwrap();
            }
        },
    );
}

#[watched]
fn the_last_sender_wakes_the_receiver() {
    let (senders, receivers): (Vec<_>, Vec<_>) = (0..many()).map(|_| mpsc::channel::<()>()).unzip();
    let receivers: Vec<_> = receivers.into_iter().map(Mutex::new).collect();
    block_then(
        many(),
        |i| assert!(receivers[i].lock().unwrap().recv().is_err()),
        || drop(senders),
    );
}

#[watched]
fn the_receiver_wakes_the_blocked_senders() {
    let (sender, receiver) = mpsc::sync_channel(0);
    block_then(
        many(),
        |i| assert_eq!(sender.send(i), Err(SendError(i))),
        || drop(receiver),
    );
}
