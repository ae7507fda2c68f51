//! `flume`: bounded channels, timeouts, and its `async` side blocked on by `pollster`. Not its
//! `Selector`: many of them on two shared channels hang, on platform threads as well.

use std::time::{Duration, Instant};

use flume::{RecvTimeoutError, SendTimeoutError, bounded, unbounded};
use pirn::thread;
use pirn_compat::{Latch, NEVER, THREADS, on_threads, setup, watchdog};

#[test]
fn rendezvous_channel_delivers_each_message_once() {
    setup();
    let _watchdog = watchdog("rendezvous_channel_delivers_each_message_once", 60);
    const EACH: usize = 20;
    let (sender, receiver) = bounded(0);
    let receiving = Latch::new(THREADS);
    let mut received = thread::scope(|scope| {
        let consumers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (receiver, receiving) = (receiver.clone(), &receiving);
                scope.spawn(move || {
                    receiving.arrive();
                    receiver.iter().collect::<Vec<usize>>()
                })
            })
            .collect();
        receiving.wait();
        for producer in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || {
                let messages = producer * EACH..(producer + 1) * EACH;
                messages.for_each(|message| sender.send(message).unwrap());
            });
        }
        drop(sender);
        let messages = consumers.into_iter().map(|c| c.join().unwrap());
        messages.flatten().collect::<Vec<_>>()
    });
    received.sort_unstable();
    assert!(received.into_iter().eq(0..THREADS * EACH));
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
        if index % 2 == 0 {
            assert_eq!(empty.recv_timeout(TIMEOUT), Err(RecvTimeoutError::Timeout));
        } else {
            let error = SendTimeoutError::Timeout(index);
            assert_eq!(full.send_timeout(index, TIMEOUT), Err(error));
        }
        assert!(start.elapsed() >= TIMEOUT);
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
        let messages = receivers.into_iter().map(|r| r.join().unwrap());
        let mut messages: Vec<usize> = messages.collect();
        messages.sort_unstable();
        assert!(messages.into_iter().eq(0..THREADS));
    });
}

/// A future's waker wakes the virtual thread that blocks on it. Each has a channel of its own:
/// futures and blocking receivers on one channel hang, on platform threads as well.
#[test]
fn messages_wake_threads_that_block_on_futures() {
    setup();
    let _watchdog = watchdog("messages_wake_threads_that_block_on_futures", 60);
    let channels: Vec<_> = (0..THREADS).map(|_| bounded(1)).collect();
    let receiving = Latch::new(THREADS);
    thread::scope(|scope| {
        for (index, (_, receiver)) in channels.iter().enumerate() {
            let receiving = &receiving;
            scope.spawn(move || {
                receiving.arrive();
                assert_eq!(pollster::block_on(receiver.recv_async()), Ok(index));
            });
        }
        receiving.wait();
        for (index, (sender, _)) in channels.iter().enumerate() {
            sender.send(index).unwrap();
        }
    });
}
