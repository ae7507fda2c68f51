//! `flume`: bounded channels, timeouts, and its `async` side blocked on by `pollster`. Not its
//! `Selector`: many of them on two shared channels hang, on platform threads as well.

use std::time::{Duration, Instant};

use crate::shared::{self, Receiving, Sending};
use ::flume::{RecvTimeoutError, SendTimeoutError, bounded, unbounded};
use pirn::thread;
use pirn_compat::{Latch, THREADS, on_threads, watched};

impl Sending for ::flume::Sender<usize> {
    fn send(&self, message: usize) {
        ::flume::Sender::send(self, message).unwrap();
    }
}

impl Receiving for ::flume::Receiver<usize> {
    fn all(&self) -> Vec<usize> {
        self.iter().collect()
    }

    fn within(&self, timeout: Duration) -> usize {
        self.recv_timeout(timeout).unwrap()
    }
}

#[watched]
fn rendezvous_channel_delivers_each_message_once() {
    shared::each_message_arrives_once(bounded(0));
}

#[watched]
fn timeouts_fire_for_all_blocked_threads() {
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

#[watched]
fn a_message_comes_before_a_long_timeout() {
    shared::a_message_comes_before_a_long_timeout(unbounded());
}

/// A future's waker wakes the virtual thread that blocks on it. Each has a channel of its own:
/// futures and blocking receivers on one channel hang, on platform threads as well.
#[watched]
fn messages_wake_threads_that_block_on_futures() {
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
