//! What every channel must do, whichever crate it comes from.

use pirn::thread;
use pirn_compat::{Latch, NEVER, THREADS};
use std::time::Duration;

/// The sending half of a channel of numbers.
pub trait Sending: Clone + Send + Sync {
    fn send(&self, message: usize);
}

/// The receiving half.
pub trait Receiving: Clone + Send + Sync {
    /// Receives until all senders are gone.
    fn all(&self) -> Vec<usize>;
    /// Receives one message, which comes before the timeout.
    fn within(&self, timeout: Duration) -> usize;
}

/// Many producers and many consumers on one channel: every message arrives exactly once, and one
/// producer's messages reach each consumer in the order in which they were sent.
pub fn each_message_arrives_once((sender, receiver): (impl Sending, impl Receiving)) {
    const EACH: usize = 50;
    let receiving = Latch::new(THREADS);
    let received: Vec<Vec<usize>> = thread::scope(|scope| {
        let consumers: Vec<_> = (0..THREADS)
            .map(|_| {
                let (receiver, receiving) = (receiver.clone(), &receiving);
                scope.spawn(move || {
                    receiving.arrive();
                    receiver.all()
                })
            })
            .collect();
        receiving.wait();
        for producer in 0..THREADS {
            let sender = sender.clone();
            scope.spawn(move || {
                let messages = producer * EACH..(producer + 1) * EACH;
                messages.for_each(|message| sender.send(message));
            });
        }
        drop(sender);
        let consumers = consumers.into_iter();
        consumers.map(|consumer| consumer.join().unwrap()).collect()
    });
    for messages in &received {
        let mut by_producer = messages.clone();
        by_producer.sort_by_key(|message| message / EACH); // stable: keeps the order of arrival
        assert!(by_producer.is_sorted());
    }
    let mut all: Vec<_> = received.into_iter().flatten().collect();
    all.sort_unstable();
    assert!(all.into_iter().eq(0..THREADS * EACH));
}

/// Threads that receive with a timeout get the messages that come before it.
pub fn a_message_comes_before_a_long_timeout((sender, receiver): (impl Sending, impl Receiving)) {
    let receiving = Latch::new(THREADS);
    thread::scope(|scope| {
        let receivers: Vec<_> = (0..THREADS)
            .map(|_| {
                scope.spawn(|| {
                    receiving.arrive();
                    receiver.within(NEVER)
                })
            })
            .collect();
        receiving.wait();
        (0..THREADS).for_each(|message| sender.send(message));
        let messages = receivers.into_iter().map(|r| r.join().unwrap());
        let mut messages: Vec<usize> = messages.collect();
        messages.sort_unstable();
        assert!(messages.into_iter().eq(0..THREADS));
    });
}
